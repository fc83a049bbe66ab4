#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Who ends takes along what is his: a client, berthd in good order, berthd by a crash, its launcher.
set -u
# shellcheck source=tests/lab/lib.sh
. "$(dirname "$0")/lib.sh"

# Descriptor 9: an input that stays open and is empty.
exec 9<> <(:)

# shellcheck disable=SC2317
service_pid_not() {
        local pid
        pid=$(run systemctl show -p MainPID --value berthd.service)
        [[ -n $pid && $pid != 0 && $pid != "$1" ]]
}

# session NAME COMMAND...: a client with a terminal, in the background.
session() {
        local name=$1
        shift
        "$lab" run berthctl run -t --name "$name" --stop-timeout 1 --ephemeral / -- "$@" <&9 >/dev/null 2>&1 &
        client=$!
}

baseline

# ---- A client that dies ----

session victim sh -c 'trap "" HUP TERM; while :; do sleep 1001; done'
expect_within 10 "a session runs" state_is victim running
expect_within 10 "with its program" run pgrep -f '^sleep 1001$'
run pkill -KILL -x berthctl
wait "$client" 2>/dev/null
expect_within 15 "its container ends when the client is killed" state_is victim exited
is "although it ignores signals" "$(properties victim ExitCode ExitStatus)" "2 9"
expect_within 10 "its processes are gone" no_process 'sleep 1001'
expect_within 10 "its scope is gone" unit_gone berth-victim.scope
ok "its record can be removed" container victim Remove b false

# ---- SIGTERM ----

start one sh -c 'trap "echo bye; exit 0" TERM; sleep 1002 & wait' >/dev/null
start two sleep 1003 >/dev/null
session three sleep 1004
# shellcheck disable=SC2016
expect_within 10 "three containers run" run sh -c 'test "$(pgrep -c -f "^sleep 100[234]$")" = 3'
begin=$SECONDS
ok "systemctl stop of the service succeeds" run systemctl stop berthd.service
wait "$client"
is "in good order" "$(run systemctl show -p ActiveState,Result --value berthd.service | paste -s -d ' ')" "success inactive"
if ((SECONDS - begin < 30)); then
        pass "within the containers' time-outs"
else
        fail "within the containers' time-outs" "it took $((SECONDS - begin)) s"
fi
ok "no program of theirs is left" no_process 'sleep 100[234]'
for name in one two three; do
        ok "nor the scope of $name" unit_gone "berth-$name.scope"
done
is "nothing is killed by systemd" "$(run journalctl -q -o cat -u berthd.service | grep -c 'Killing process')" 0
like "the next call finds no container" "$(manager ListContainers)" '^a\(sssuo\) 0'

# ---- A crash ----

start orphan sh -c 'trap "" TERM; while :; do sleep 1005; done' >/dev/null
pid=$(run systemctl show -p MainPID --value berthd.service)
run kill -KILL "$pid"
expect_within 15 "a crashed service is started again" service_pid_not "$pid"
expect_within 30 "the container that it left is ended" unit_gone berth-orphan.scope
ok "with all its processes" no_process 'sleep 1005'
ok "which the journal tells, by container" journal_has 'orphan was left by a service that ended unexpectedly' \
        BERTH_CONTAINER=orphan PRIORITY=4
like "the name is free" "$(start orphan true 2>&1)" '/org/berth1/container/orphan'
container orphan Wait >/dev/null
container orphan Remove b false >/dev/null
ok "the record has gone" run sh -c '! ls /run/berth/containers/* 2>/dev/null'

# Nobody calls after this crash: the restart alone has to find out.
session orphan2 sleep 1006
expect_within 10 "a session runs again" run pgrep -f '^sleep 1006$'
pid=$(run systemctl show -p MainPID --value berthd.service)
run kill -KILL "$pid"
expect_within 30 "its container is ended without a call" unit_gone berth-orphan2.scope
r=0
wait "$client" || r=$?
is "its client says that berth failed" "$r" 125

# ---- The launcher dies ----

start before true >/dev/null
container before Wait >/dev/null
container before Remove b false >/dev/null
pid=$(run pgrep -f '^berth-launch')
ok "the launcher is killed" run kill -KILL "$pid"
like "a new launcher is started when it is needed" "$(start again true 2>&1)" '/org/berth1/container/again'
container again Wait >/dev/null
is "and works" "$(properties again Result)" success
isnt "it is another process" "$(run pgrep -f '^berth-launch')" "$pid"
container again Remove b false >/dev/null

# ---- The machine goes down with a container in it ----

ok "nothing is left in the lab" leaks compare /run/leaks.before
start last sh -c 'trap "exit 0" TERM; sleep 1007 & wait' >/dev/null
begin=$SECONDS
ok "the lab shuts down with a container running" "$lab" down
if ((SECONDS - begin < 15)); then
        pass "without waiting for a time-out"
else
        fail "without waiting for a time-out" "it took $((SECONDS - begin)) s"
fi
trap - EXIT
finish
