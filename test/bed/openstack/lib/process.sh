# shellcheck shell=bash
# The bed's processes: a pid file each, and a mark in their environment by
# which all of them, children too, are found again. Nothing else is signalled.

MARK=OPENSTACK_BED_PROCESS

starttime() { # PID: field 22 of /proc/PID/stat, counted after the command's name
    sed 's/.*) //' "/proc/$1/stat" 2> /dev/null | awk '{print $20}'
}

alive() { # NAME
    local pid started
    [ -s "$RUN/$1.pid" ] || return 1
    read -r pid started < "$RUN/$1.pid"
    [ -n "$started" ] && [ "$(starttime "$pid")" = "$started" ]
}

any_alive() {
    local file
    for file in "$RUN"/*.pid; do
        if alive "$(basename "$file" .pid)"; then return 0; fi
    done
    return 1
}

# A daemon must not keep what its starter has open: a lock of flock(1) would be held as long as the daemon lives.
close_inherited() {
    local fd
    for fd in "/proc/$BASHPID/fd"/*; do
        fd=${fd##*/}
        # 255 is the script itself; bash closes it by itself.
        if [ "$fd" -gt 2 ] && [ "$fd" != 255 ]; then eval "exec $fd>&-"; fi
    done
}

start() { # NAME COMMAND...: unless it runs
    local name=$1 pid
    shift
    if alive "$name"; then return 0; fi
    (
        close_inherited
        exec env "$MARK=$BED" setsid "$@" >> "$LOG/$name.log" 2>&1 < /dev/null
    ) &
    pid=$!
    echo "$pid $(starttime "$pid")" > "$RUN/$name.pid"
}

wait_for() { # SECONDS NAME COMMAND...: until the command succeeds or the daemon dies
    local end=$((SECONDS + $1 * ${BED_PATIENCE:-1})) name=$2
    shift 2
    until "$@" > /dev/null 2>&1; do
        alive "$name" || die "$name has stopped, see $LOG/$name.log"
        [ "$SECONDS" -lt "$end" ] || die "$name does not answer, see $LOG/$name.log"
        sleep 0.2
    done
}

port_open() { (: < "/dev/tcp/$1/$2") 2> /dev/null; } # ADDRESS PORT

report_stopped() {
    local file name
    for file in "$RUN"/*.pid; do
        name=$(basename "$file" .pid)
        alive "$name" || echo "$name has stopped, see $LOG/$name.log" >&2
    done
}

# A program that sets its title may write over its environment: Nova 34 does. So the sessions of the pid files count too.
ours() { # prints the pid of every process of this bed, once or more
    local environ file
    for file in "$RUN"/*.pid; do
        alive "$(basename "$file" .pid)" || continue
        ps -o pid= -s "$(cut -d' ' -f1 "$file")" | tr -d ' '
    done
    for environ in /proc/[0-9]*/environ; do
        if { tr '\0' '\n' < "$environ"; } 2> /dev/null | grep -qxF "$MARK=$BED"; then
            environ=${environ%/environ}
            echo "${environ#/proc/}"
        fi
    done
}

pid_of() { # NAME...
    local name
    for name; do
        [ ! -s "$RUN/$name.pid" ] || cut -d' ' -f1 "$RUN/$name.pid"
    done
}

signal() { # SIGNAL PID...
    local name=$1
    shift
    [ $# = 0 ] || kill "-$name" "$@" 2> /dev/null || true
}

wait_gone() { # TENTHS PID...: succeeds when none is left
    local tenths=$1 pid left
    shift
    while [ "$tenths" -gt 0 ]; do
        left=
        for pid; do [ ! -d "/proc/$pid" ] || left=yes; done
        [ -n "$left" ] || return 0
        sleep 0.1
        tenths=$((tenths - 1))
    done
    return 1
}
