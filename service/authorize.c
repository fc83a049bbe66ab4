/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/authorize.h"

#include <unistd.h>

#include "interfaces/names.h"

static const char *const action_names[_ACTION_MAX] = {
        [ACTION_RUN] = "run containers",
        [ACTION_MANAGE] = "manage containers",
        [ACTION_WATCH] = "watch containers",
};

int authorize(const Client *client, Action action, sd_bus_error *error) {
        if (client->uid == 0)
                return 0;
        if (client->private_connection && client->uid == geteuid())
                return 0;
        (void) sd_bus_error_setf(error, BERTH_ERROR_ACCESS_DENIED, "user %u may not %s", client->uid,
                                 action_names[action]);
        return -EACCES;
}
