/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The XML of an introspection as lines that can be compared. It reads what people and sd-bus write, not all of XML. */
#pragma once

/* Appends a line for each member of the interfaces whose names begin like this, and for each of its arguments:
 *         org.x.Y method Do
 *         org.x.Y method Do 1 in name s
 *         org.x.Y signal Done 1 name s
 *         org.x.Y property Size t read const
 * and for every interface and every child: "interface org.x.Y", "node child". *lines is a NULL-terminated list for strv_free(). */
void interface_read(const char *xml, const char *prefix, char ***lines);
