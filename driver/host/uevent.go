package host

import (
	"bytes"
	"strings"
)

// uevent is what the kernel tells of a device that came, went or changed (Linux, lib/kobject_uevent.c). No uevent carries a disk's
// serial, so it says only that a look is worth while.
type uevent struct {
	action, path, subsystem string
}

// parseUevent reads a message of the kernel's: action@path, and then KEY=VALUE, each ended by a zero byte. udevd's own messages,
// which begin with the word libudev, are none.
func parseUevent(message []byte) (uevent, bool) {
	head, rest, _ := bytes.Cut(message, []byte{0})
	action, path, ok := strings.Cut(string(head), "@")
	if !ok || action == "" || !strings.HasPrefix(path, "/") {
		return uevent{}, false
	}
	e := uevent{action: action, path: path}
	for field := range bytes.SplitSeq(rest, []byte{0}) {
		if value, ok := bytes.CutPrefix(field, []byte("SUBSYSTEM=")); ok {
			e.subsystem = string(value)
		}
	}
	return e, true
}

// aboutDisks reports whether the event may bring a disk into sight, or tell its new size.
func (e uevent) aboutDisks() bool { return e.subsystem == "block" && e.action != "remove" }
