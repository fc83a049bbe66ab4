# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For the tests of the lab: each script boots one of its own, with the build of $BUILD installed.

# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

lab=$tests_dir/lab/lab
export LAB_NAME=${LAB_NAME:-test-$$}
# A TMPDIR of one run is looked at afterwards: what the lab leaves there is found.
export LAB_TMPDIR=${TMPDIR:-/var/tmp}

# In the lab, without a look at stdin, which belongs to the test's loops.
run() {
        "$lab" run "$@" </dev/null
}

# The same as an ordinary user.
run_user() {
        run setpriv --reuid user --regid user --clear-groups "$@"
}

manager() {
        run busctl -- call org.berth1 /org/berth1 org.berth1.Manager "$@"
}

# container NAME METHOD [SIGNATURE ARGUMENT...]; a name of letters and digits is its own path.
container() {
        local name=$1
        shift
        run busctl --timeout=60 -- call org.berth1 "/org/berth1/container/$name" org.berth1.Container "$@"
}

# properties NAME PROPERTY...: their values, without types, on one line.
properties() {
        local name=$1
        shift
        run busctl get-property org.berth1 "/org/berth1/container/$name" org.berth1.Container "$@" |
                cut -d ' ' -f 2- | tr -d '"' | paste -s -d ' '
}

# start NAME COMMAND...: a container of that name on the lab's own root, none of which it can change.
start() {
        local name=$1
        shift
        manager RunContainer 'sa{sv}a{sv}' "$name" 3 RootDirectory s / Ephemeral b true Command as "$#" "$@" 0
}

state_is() {
        [[ $(properties "$1" State) == "$2" ]]
}

unit_is() {
        [[ $(run systemctl show -p ActiveState --value "$1") == "$2" ]]
}

# Systemd forgets a transient scope when it is over.
unit_gone() {
        [[ $(run systemctl show -p LoadState --value "$1") == not-found ]]
}

# no_process ARGUMENT: no process of the lab has it in its command line.
no_process() {
        ! run pgrep -f "^([^ ]*/)?$1\$"
}

leaks() {
        run env LEAKS_WAIT=10 bash -c "$(cat "$tests_dir/leaks")" leaks "$@"
}

# What there is when the service is idle and has its launcher.
baseline() {
        start baseline true >/dev/null
        container baseline Wait >/dev/null
        container baseline Remove b false >/dev/null
        wait_for 10 unit_gone berth-baseline.scope
        leaks snapshot /run/leaks.before >/dev/null
}

# journal_has PATTERN FIELD=VALUE...
journal_has() {
        local pattern=$1
        shift
        run journalctl -q -o cat "$@" | grep -E "$pattern"
}

lab_end() {
        local r=$?
        "$lab" down || r=1
        exit "$r"
}

((UID == 0)) || skip_all "needs root"
trap lab_end EXIT
trap 'exit 130' INT TERM HUP
"$lab" up >&2 || {
        fail "the lab comes up"
        finish
}

# Ends the script: nothing may be left in the lab, and the lab itself goes without a trace.
lab_finish() {
        ok "nothing is left in the lab" leaks compare /run/leaks.before
        ok "the lab shuts down" "$lab" down
        trap - EXIT
        finish
}
