#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A container as systemd sees it: its scope, its end, its journal.
set -u
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

scope_property() {
        run systemctl show -p "$2" --value "$1"
}

baseline

# ---- What systemctl shows ----

is "busctl starts a container" "$(start demo sleep 1000)" 'oa{sh} "/org/berth1/container/demo" 0'
output=$(run systemctl status berth-demo.scope)
like "systemctl shows its scope" "$output" 'Active: active \(running\)'
like "with its process" "$output" 'sleep 1000'
like "in the slice of berth" "$output" 'CGroup: /berth.slice/berth-demo.scope'
is "Controller is berth" "$(scope_property berth-demo.scope Controller)" org.berth1
is "Delegate is on" "$(scope_property berth-demo.scope Delegate)" yes
is "CollectMode lets go of failed ones" "$(scope_property berth-demo.scope CollectMode)" inactive-or-failed
is "PID 1 waits 5 s longer than the spec" "$(scope_property berth-demo.scope TimeoutStopUSec)" 15s
like "it stops before the service at shutdown" "$(scope_property berth-demo.scope After)" 'berthd\.service'
is "properties name unit and cgroup" "$(properties demo State Unit ControlGroup)" \
        "running berth-demo.scope /berth.slice/berth-demo.scope"
pid=$(properties demo PID)
is "PID is its first process" "$(run cat "/proc/$pid/cmdline" | tr '\0' ' ')" "sleep 1000 "
is "GetContainerByPID's other way is the cgroup" "$(run cat "/proc/$pid/cgroup" | sed -n 's/^0:://p')" \
        /berth.slice/berth-demo.scope
is "berthd's score is not the container's" "$(run cat "/proc/$pid/oom_score_adj")" 0
is "nor is its limit of descriptors" "$(run sh -c "awk '/Max open files/ { print \$4 }' /proc/$pid/limits")" 1024

# ---- What it says ----

start talker sh -c 'echo from-init; echo from-error >&2; exec sleep 1000' >/dev/null
expect_within 10 "what it says is in the journal under its name" \
        run sh -c 'journalctl -o cat -t berth-talker | grep -q from-init'
expect_within 10 "and what it complains of" run sh -c 'journalctl -o cat -t berth-talker | grep -q from-error'
like "and is its scope's" "$(run systemctl status berth-talker.scope)" 'from-init'
container talker Capture 'asa{sv}' 2 echo captured 0 >/dev/null
not_ok "what is captured is not" run sh -c 'journalctl -o cat -t berth-talker | grep -q captured'
container talker Remove b true >/dev/null

# ---- The end ----

container demo Signal i 9 >/dev/null
ok "Wait tells of the end" container demo Wait
is "a signal's number arrives" "$(properties demo State Result ExitCode ExitStatus PID)" "exited signal 2 9 0"
expect_within 10 "its scope has gone" unit_gone berth-demo.scope
ok "it can be removed" container demo Remove b false
not_ok "and is gone then" manager GetContainer s demo

for status in 0 1 42 255; do
        r=0
        run berthctl run -T --rm --ephemeral / -- sh -c "exit $status" || r=$?
        is "exit status $status arrives" "$r" "$status"
done
# The first process of a PID namespace is immune to its own signals.
# shellcheck disable=SC2016
like "signals from inside don't reach PID 1" "$(run berthctl run -T --rm --ephemeral / -- \
        sh -c 'kill -KILL $$; echo alive' 2>&1)" alive

# ---- systemctl stop ----

start polite sh -c 'trap "exit 7" TERM; echo up >/run/up; sleep 1000 & wait' >/dev/null
# Its trap is set when it waits.
# shellcheck disable=SC2016
expect_within 10 "a program with a handler for SIGTERM runs" \
        run sh -c 'test "$(pgrep -c -f "^sleep 1000$")" = 1'
ok "systemctl stop of a scope succeeds" run systemctl stop berth-polite.scope
expect_within 10 "the container has ended" state_is polite exited
is "by its stop signal, with its own status" "$(properties polite Result ExitCode ExitStatus)" "exit-code 1 7"
container polite Remove b false >/dev/null

manager RunContainer 'sa{sv}a{sv}' stubborn 4 RootDirectory s / Ephemeral b true TimeoutStopUSec t 500000 \
        Command as 3 sh -c 'trap "" TERM; while :; do sleep 1000; done' 0 >/dev/null
ok "systemctl stop of one that ignores the signal succeeds" run systemctl stop berth-stubborn.scope
expect_within 10 "it has ended too" state_is stubborn exited
is "killed by the time-out" "$(properties stubborn Result ExitCode ExitStatus)" "timeout 2 9"
container stubborn Remove b false >/dev/null

start failing sh -c 'exit 3' >/dev/null
container failing Wait >/dev/null
expect_within 10 "a scope is gone after a failure" unit_gone berth-failing.scope
container failing Remove b false >/dev/null

# Ends before systemd can have attached it, again and again.
left=0
for ((i = 0; i < 30; i++)); do
        run berthctl run -T --rm --name "short$i" --ephemeral / -- true || left=$((left + 1))
done
is "30 short runs succeed" "$left" 0
expect_within 10 "and leave no scope" \
        run sh -c '! systemctl list-units --all --plain --no-legend "berth-*.scope" | grep .'

# ---- Names and limits ----

ok "a name that needs escaping" run berthctl run -T --rm --name a.b-c_d+1 --ephemeral / -- \
        true
manager RunContainer 'sa{sv}a{sv}' limited 5 RootDirectory s / Ephemeral b true TasksMax t 77 \
        Slice s berth-mine.slice Command as 2 sleep 1000 0 >/dev/null
if ! not_applicable "TasksMax reaches the scope" pids-controller; then
        is "TasksMax reaches the scope" "$(scope_property berth-limited.scope TasksMax)" 77
        is "and the kernel" "$(run cat /sys/fs/cgroup/berth.slice/berth-mine.slice/berth-limited.scope/pids.max)" 77
fi
container limited Remove b true >/dev/null 2>&1
manager RunContainer 'sa{sv}a{sv}' sliced 4 RootDirectory s / Ephemeral b true \
        Slice s berth-mine.slice Command as 2 sleep 1000 0 >/dev/null
is "a slice of its own" "$(properties sliced ControlGroup)" /berth.slice/berth-mine.slice/berth-sliced.scope
container sliced Remove b true >/dev/null

# ---- The journal ----

ok "the journal tells of the start, by container" journal_has 'Container demo started, PID [0-9]+' \
        BERTH_CONTAINER=demo _SYSTEMD_UNIT=berthd.service
ok "and of the end" journal_has 'Container demo ended: signal, signal 9' BERTH_CONTAINER=demo
ok "both are the scope's too" journal_has 'Container demo ended' UNIT=berth-demo.scope

# ---- Terminals ----

is "a terminal has a size and a name in its devpts" \
        "$(run berthctl run -t --rm --ephemeral / -- sh -c 'stty size; tty' | tr -d '\r' | paste -s -d ' ')" \
        "24 80 /dev/pts/0"
is "the cgroup namespace hides the host's tree" \
        "$(run berthctl run -T --rm --ephemeral / -- sed -n 's/^0:://p' /proc/self/cgroup)" /

lab_finish
