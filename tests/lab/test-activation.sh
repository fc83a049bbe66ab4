#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# berthd comes when it is called and goes when it is idle; root alone may call.
set -u
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

service_pid() {
        run systemctl show -p MainPID --value berthd.service
}

# shellcheck disable=SC2317
interfaces_equal() {
        local path=$1
        shift
        run busctl introspect --xml-interface org.berth1 "$path" |
                "$tests_dir/lab/compare-interfaces" "${@/#/$tests_dir/../interfaces/org.berth1.}"
}

is "it does not run before the first call" "$(run systemctl is-active berthd.service)" inactive
leaks snapshot /run/leaks.before >/dev/null

# Before anything has started it, so that a start by a stranger would be seen.
output=$(run_user busctl get-property org.berth1 /org/berth1 org.berth1.Manager Version 2>&1)
like "an ordinary user is refused" "$output" 'Access denied'
output=$(run_user busctl call org.berth1 /org/berth1 org.berth1.Manager RunContainer 'sa{sv}a{sv}' x \
        2 RootDirectory s / Command as 1 true 0 2>&1)
like "an ordinary user can start nothing" "$output" 'Access denied'
# dbus-broker looks at the policy when the service is there.
if [[ ${LAB_BUS:-daemon} == daemon ]]; then
        is "a refused call does not start the service" "$(run systemctl is-active berthd.service)" inactive
fi
run systemctl stop berthd.service
output=$(run_user busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus \
        RequestName su org.berth1 0 2>&1)
like "an ordinary user can't take the name" "$output" '[Aa]ccess denied|not allowed'

output=$(run busctl get-property org.berth1 /org/berth1 org.berth1.Manager Version 2>&1)
like "the first call is answered" "$output" '^s "[0-9]+\.[0-9]+'
is "and has started the service" "$(run systemctl is-active berthd.service)" active
is "which says that it is ready" "$(run systemctl show -p StatusText --value berthd.service)" "Serving org.berth1"
is "its binaries can't be written from its own view" \
        "$(run sh -c 'findmnt -N "$(systemctl show -p MainPID --value berthd.service)" -n -o OPTIONS \
                -T /usr/libexec/berth/berthd' | grep -o '^ro')" ro

ok "the manager's interface is the published one" interfaces_equal /org/berth1 Manager.xml
start demo sleep 1000 >/dev/null
ok "a container's interface is the published one" interfaces_equal /org/berth1/container/demo Container.xml
like "objects are listed by the ObjectManager" "$(run busctl call org.berth1 /org/berth1 \
        org.freedesktop.DBus.ObjectManager GetManagedObjects)" '/org/berth1/container/demo'
container demo Remove b true >/dev/null

# ---- Idle exit ----

run sh -c 'mkdir -p /run/systemd/system/berthd.service.d
        printf "[Service]\nExecStart=\nExecStart=/usr/libexec/berth/berthd --idle-timeout=1\n" \
                >/run/systemd/system/berthd.service.d/idle.conf
        systemctl daemon-reload
        systemctl restart berthd.service'
expect_within 15 "it goes when it is idle" unit_is berthd.service inactive
is "in good order" "$(run systemctl show -p Result --value berthd.service)" success
like "the next call starts it again" "$(manager ListContainers 2>&1)" '^a\(sssuo\) 0'

# It stays as long as there is a container, however much longer than the time-out.
start busy sleep 3 >/dev/null
pid=$(service_pid)
container busy Wait >/dev/null
is "it stays while a container runs" "$(service_pid)" "$pid"
container busy Remove b false >/dev/null 2>&1
expect_within 15 "it goes when the last container is gone" unit_is berthd.service inactive

# Calls that meet the service while it goes: each has to be answered, by the old one or by the next.
lost=0
for ((i = 0; i < 4; i++)); do
        manager ListContainers >/dev/null || lost=$((lost + 1))
        # Until it has told systemd that it stops, and no longer.
        wait_for 10 bash -c "! [[ \$('$lab' run systemctl show -p ActiveState --value berthd.service) == active ]]"
        manager ListContainers >/dev/null || lost=$((lost + 1))
done
is "no call is lost when the service is about to go" "$lost" 0
is "it has never failed" "$(run systemctl show -p NRestarts --value berthd.service)" 0
expect_within 15 "and goes at last" unit_is berthd.service inactive

lab_finish
