/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "util/cleanup.h"

typedef struct Symbol {
        const char *name;
        void *to; /* where its address is put */
} Symbol;

static int load(const char *library, const Symbol *symbols, size_t n, sd_bus_error *error) {
        void *handle, *address;

        handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
                (void) sd_bus_error_setf(error, SD_BUS_ERROR_FAILED, "a library is missing: %s", dlerror());
                return -ENOPKG;
        }
        for (size_t i = 0; i < n; i++) {
                address = dlsym(handle, symbols[i].name);
                if (!address) {
                        (void) sd_bus_error_setf(error, SD_BUS_ERROR_FAILED, "a library is too old: %s",
                                                 dlerror());
                        return -ENOPKG;
                }
                /* C has no conversion from an object's address to a function's; POSIX has (dlsym(3)). */
                memcpy(symbols[i].to, &address, sizeof(address));
        }
        return 0;
}

#define SYMBOL(function) { #function, &ret->function },

int library_smartcols(Smartcols *ret, sd_bus_error *error) {
        const Symbol symbols[] = { LIBRARY_SMARTCOLS(SYMBOL) };

        return load("libsmartcols.so.1", symbols, ELEMENTSOF(symbols), error);
}

int library_jansson(Jansson *ret, sd_bus_error *error) {
        const Symbol symbols[] = { LIBRARY_JANSSON(SYMBOL) };

        return load("libjansson.so.4", symbols, ELEMENTSOF(symbols), error);
}
