package host

import (
	"slices"
	"strings"
	"unicode"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// refusedFlags are mount options that would make a mount something else than this volume's file system at this place.
var refusedFlags = map[string]string{
	"bind": "the driver binds by itself", "rbind": "the driver binds by itself", "move": "it takes a mount from elsewhere",
	"remount": "it changes a mount that exists", "loop": "it uses another device", "offset": "it uses another device",
	"sizelimit": "it uses another device", "logdev": "it uses another device", "rtdev": "it uses another device",
	"device": "it uses another device", "journal_path": "it uses another device", "journal_dev": "it uses another device",
}

// mountOptions reads mount flags as a PersistentVolume has them, each entry one option or several with commas between. A comma in
// double quotes, as in an SELinux context, does not end an option. readOnly is whether the last of ro and rw was ro.
func mountOptions(flags []string) (options []string, readOnly bool, err error) {
	for _, entry := range flags {
		split, ok := splitOptions(entry)
		if !ok {
			return nil, false, volume.Errorf(volume.InvalidArgument, "mount flag %q has an unclosed quote or a control character", shorten(entry))
		}
		for _, option := range split {
			name, _, _ := strings.Cut(option, "=")
			if why, refused := refusedFlags[strings.ToLower(name)]; refused {
				return nil, false, volume.Errorf(volume.InvalidArgument, "mount flag %q is refused: %s; remove it from mountOptions", shorten(option), why)
			}
			if hasPrefix(strings.ToLower(name), "x-mount.", "loop", "make-") {
				return nil, false, volume.Errorf(volume.InvalidArgument, "mount flag %q is refused: it changes more than this mount; "+
					"remove it from mountOptions", shorten(option))
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

func splitOptions(entry string) (options []string, ok bool) {
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
