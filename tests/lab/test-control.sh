#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A container as a whole under a real systemd: frozen by either side, who is in it, what it uses, its limits.
set -u
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

events() {
        run sed -n 's/^frozen //p' "/sys/fs/cgroup/berth.slice/berth-$1.scope/cgroup.events"
}

baseline

# ---- Freezing ----

start frost sleep 1000 >/dev/null
ok "systemctl freezes its scope" run systemctl freeze berth-frost.scope
expect_within 10 "the container is paused then" state_is frost paused
like "Exec says so at once" "$(container frost Exec 'a{sv}' 1 Command as 1 true 2>&1)" 'container frost is paused'
ok "systemctl thaws it" run systemctl thaw berth-frost.scope
expect_within 10 "it is running again" state_is frost running
ok "Exec works again" container frost Exec 'a{sv}' 1 Command as 1 true

ok "Pause stops it" container frost Pause
is "and replies when the group is frozen" "$(events frost)" 1
is "and the state tells" "$(properties frost State)" paused
ok "statistics can be read meanwhile" container frost GetStatistics
ok "Resume lets it go on" container frost Resume
is "and the group is not frozen" "$(events frost)" 0
ok "Pause again" container frost Pause
ok "a paused one can be removed by force" container frost Remove b true
expect_within 10 "its scope has gone" unit_gone berth-frost.scope

start cold sleep 1000 >/dev/null
ok "systemctl freezes another" run systemctl freeze berth-cold.scope
expect_within 10 "which is paused then" state_is cold paused
ok "Stop thaws and ends what systemctl froze" container cold Stop t 0
is "by SIGKILL" "$(properties cold State Result ExitCode ExitStatus)" "exited timeout 2 9"
expect_within 10 "its scope has gone too" unit_gone berth-cold.scope
container cold Remove b false >/dev/null

# ---- Processes and numbers ----

start crowd sleep 1000 >/dev/null
pid=$(properties crowd PID)
is "ListProcesses has numbers and command lines" "$(container crowd ListProcesses)" "a(us) 1 $pid \"sleep 1000\""
is "GetContainerByPID finds it" "$(manager GetContainerByPID u "$pid")" 'o "/org/berth1/container/crowd"'
like "and nothing for PID 1" "$(manager GetContainerByPID u 1 2>&1)" 'process 1 is in no container'
like "statistics have the processor time" "$(container crowd GetStatistics)" '"CPUUsageNSec" t [0-9]+'
if not_applicable "Update reaches the scope" pids-controller; then
        like "Update names the key that the host lacks" \
                "$(container crowd Update 'a{sv}' 1 TasksMax t 77 2>&1)" 'TasksMax: there is no pids controller'
else
        ok "Update is accepted" container crowd Update 'a{sv}' 1 TasksMax t 77
        is "Update reaches the scope" "$(run systemctl show -p TasksMax --value berth-crowd.scope)" 77
fi
ok "SignalAll ends it" container crowd SignalAll i 9
ok "and Wait tells" container crowd Wait
is "of a signal" "$(properties crowd State Result ExitCode ExitStatus)" "exited signal 2 9"
container crowd Remove b false >/dev/null

lab_finish
