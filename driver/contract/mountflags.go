package contract

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// refusedMountFlags are mount options that would make a mount something else than this volume's file system at this place.
var refusedMountFlags = map[string]string{
	"bind": "the driver binds by itself", "rbind": "the driver binds by itself", "move": "it takes a mount from elsewhere",
	"remount": "it changes a mount that exists", "loop": "it uses another device", "offset": "it uses another device",
	"sizelimit": "it uses another device", "logdev": "it uses another device", "rtdev": "it uses another device",
	"device": "it uses another device", "journal_path": "it uses another device", "journal_dev": "it uses another device",
}

// refusedMountPrefixes begin options that change more than the mount.
var refusedMountPrefixes = []string{"x-mount.", "loop", "make-"}

// ParseMountFlags reads mount flags as a PersistentVolume has them, each entry one option or several with commas between. A comma in
// double quotes, as in an SELinux context, does not end an option. ReadOnly is whether the last of ro and rw was ro. It refuses what
// no node mounts with; the controller asks it too, so that such a volume is not provisioned or attached first.
func ParseMountFlags(flags []string) (options []string, readOnly bool, err error) {
	for _, entry := range flags {
		split, ok := splitMountFlags(entry)
		if !ok {
			return nil, false, fmt.Errorf("mount flag %.200q has an unclosed quote or a control character; correct mountOptions", entry)
		}
		for _, option := range split {
			if why := RefusedMountFlag(option); why != "" {
				return nil, false, fmt.Errorf("mount flag %.200q is refused: %s; remove it from mountOptions", option, why)
			}
			switch option {
			case "ro":
				readOnly = true
			case "rw":
				readOnly = false
			}
			options = append(options, option)
		}
	}
	return options, readOnly, nil
}

// RefusedMountFlag says why an option is refused; empty where it is not.
func RefusedMountFlag(option string) string {
	name, _, _ := strings.Cut(strings.ToLower(option), "=")
	if why, refused := refusedMountFlags[name]; refused {
		return why
	}
	if slices.ContainsFunc(refusedMountPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return "it changes more than this mount"
	}
	return ""
}

func splitMountFlags(entry string) (options []string, ok bool) {
	if strings.ContainsFunc(entry, unicode.IsControl) {
		return nil, false
	}
	quoted := false
	options = strings.FieldsFunc(entry, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ',' && !quoted
	})
	for i := range options {
		options[i] = strings.TrimSpace(options[i])
	}
	return slices.DeleteFunc(options, func(o string) bool { return o == "" }), !quoted
}
