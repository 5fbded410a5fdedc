package contract

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// refusedMountFlags are mount options that would mount something other than the file system of the volume, or elsewhere.
var refusedMountFlags = map[string]string{
	"bind": "the driver sets it where needed", "rbind": "the driver sets it where needed", "move": "it moves another mount",
	"remount": "it changes an existing mount", "loop": "it uses another device", "offset": "it uses another device",
	"sizelimit": "it uses another device", "logdev": "it uses another device", "rtdev": "it uses another device",
	"device": "it uses another device", "journal_path": "it uses another device", "journal_dev": "it uses another device",
}

// refusedMountPrefixes are the prefixes of options that change more than the mount.
var refusedMountPrefixes = []string{"x-mount.", "loop", "make-"}

// ParseMountFlags reads the mount flags of a PersistentVolume. An entry holds one option, or several with commas between them. A comma in
// double quotes, as in an SELinux context, does not end an option. ReadOnly reports whether the last of ro and rw is ro. The error names an
// option that the node refuses. The controller calls it too, so that it does not provision or attach such a volume.
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
			if option == "ro" || option == "rw" {
				readOnly = option == "ro"
			}
			options = append(options, option)
		}
	}
	return options, readOnly, nil
}

// RefusedMountFlag is the reason why the driver refuses an option; empty if it does not.
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
	if strings.ContainsFunc(entry, unicode.IsControl) || strings.Contains(entry, `\"`) {
		// kubelet writes a quote in the SELinux level of a pod so, and mount(8) ends the quote there.
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
