package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func replaced(from, to string) func(string) string {
	return func(s string) string { return strings.Replace(s, from, to, 1) }
}

// A warning that something fails is drift when it is new, in each command and form. A pipeline reads no warnings.
func TestWhatBeginsToFailIsDrift(t *testing.T) {
	const forced = "  topology: {mode: enabled}\n"
	for name, c := range map[string]struct {
		spec, inventory string
		edit            func(string) string
	}{
		"a compute zone without a volume zone": {forced, "two-zones.yaml", replaced("zones:\n  compute:\n    state: known\n    value:\n", "zones:\n  compute:\n    state: known\n    value:\n      - name: az3\n        available: true\n")},
		"no compute service":                   {forced, "two-zones.yaml", replaced("    compute:\n      present: true\n", "    compute:\n      present: false\n")},
		"a volume zone less":                   {forced, "two-zones.yaml", replaced("  volume:\n    state: known\n    value:\n      - name: az1\n        available: true\n", "  volume:\n    state: known\n    value:\n")},
		"a mapped volume zone less":            {"  topology: {mode: enabled, zoneMap: {az1: az2, az2: az1}}\n", "two-zones.yaml", replaced("  volume:\n    state: known\n    value:\n      - name: az1\n        available: true\n", "  volume:\n    state: known\n    value:\n")},
		"no compute zone at all": {forced, "two-zones.yaml", func(s string) string {
			begin := strings.Index(s, "  compute:\n    state: known\n") // of the zones
			end := begin + strings.Index(s[begin:], "  volume:\n")
			return s[:begin] + "  compute:\n    state: known\n    value: []\n" + s[end:]
		}},
		"a new type with the name of an extra class": {"  storageClasses: {extra: [{name: gold, type: standard}]}\n", "one-zone.yaml", replaced("  value:\n    - id:", "  value:\n    - id: "+anotherID+"\n      name: gold\n      public: true\n      multiattach: false\n      replication: false\n      encryption: {state: denied}\n    - id:")},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "a compute zone without a volume zone" {
				testenv.NotShort(t)
			}
			before := recorded(t, c.inventory)
			b, args := changed(t, c.spec+"  driftCheck: {schedule: '0 * * * *'}\n", before, c.edit(before))
			job := b.file(t, "job.yaml", driftCheckPlan(t, files(t, filepath.Join(b.dir, "out"))))
			after := args[len(args)-1]
			for _, command := range [][]string{
				append(args, "--check"), {"plan", "--inventory", after, "--check", filepath.Join(b.dir, "out", "plan.yaml")}, {"plan", "--inventory", after, "--check", job},
			} {
				stdout, stderr, code := b.run(t, command...)
				if code != Different || !strings.Contains(stdout, "new warning: ") {
					t.Errorf("%s: want exit %d and the warning on stdout, got %d: %s%s", command[0], Different, code, stdout, stderr)
				}
				stdout, _, _ = b.run(t, append(command, "-o", "json")...)
				if !strings.Contains(stdout, `"upToDate": false`) || !strings.Contains(stdout, `"field": "failures"`) {
					t.Errorf("%s: want the warning in JSON, got %s", command[0], stdout)
				}
			}
			b.ok(t, args...)
			b.ok(t, append(args, "--check")...)
			job = b.file(t, "job.yaml", driftCheckPlan(t, files(t, filepath.Join(b.dir, "out"))))
			b.ok(t, "plan", "--inventory", after, "--check", job)
		})
	}
}
