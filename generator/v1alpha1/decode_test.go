package v1alpha1

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const head = "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\n"

func TestADistributionIsReadFromYAMLAndJSON(t *testing.T) {
	level := 4
	want := Distribution{APIVersion: APIVersion, Kind: KindDistribution, Metadata: Metadata{Name: "prod"}, Spec: Spec{
		Driver: Driver{LogLevel: &level}, VolumeAttachLimit: "20",
		StorageClasses: StorageClasses{Extra: []ExtraClass{{Type: "fast", ClassOverride: ClassOverride{Name: "keep", ReclaimPolicy: "Retain"}}}},
	}}
	for name, text := range map[string]string{
		"yaml": head + "metadata: {name: prod}\nspec:\n  driver: {logLevel: 4}\n  volumeAttachLimit: 20\n  storageClasses:\n    extra:\n    - {type: fast, name: keep, reclaimPolicy: Retain}\n",
		"json": `{"metadata": {"name": "prod"}, "spec": {"driver": {"logLevel": 4}, "volumeAttachLimit": "20", "storageClasses": {"extra": [{"type": "fast", "name": "keep", "reclaimPolicy": "Retain"}]}}}`,
	} {
		got, err := DecodeDistribution("c", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	name := strings.Repeat("容", 255) // Cinder counts letters
	if _, err := DecodeDistribution("c", []byte(head+"spec: {storageClasses: {include: ["+name+"], overrides: {"+name+": {}}}}\n")); err != nil {
		t.Error(err)
	}
}

func TestAnEmptyConfigurationIsTheDefaults(t *testing.T) {
	for _, text := range []string{
		"", "# nothing\n", "---\n", "null\n", "{}",
		"\ufeff# \u26a0\ufe0f ask first, \U0001f469\u200d\U0001f4bb\r\n# \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645\n# \u845b\U000e0100, Ver\u00adwaltung\n{}\r\n", // comments of people
	} {
		got, err := DecodeDistribution("c", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(Distribution{APIVersion: APIVersion, Kind: KindDistribution}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestEveryMistakeIsNamedWithFileLineKeyAndWhatIsRight(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"unknown key", head + "spec:\n  topolgy: {}\n", "c.yaml:4: unknown key spec.topolgy; did you mean topology?"},
		{"unknown key far from all", head + "spec:\n  snapshots: {xyzzyplugh: 1}\n", "c.yaml:4: unknown key spec.snapshots.xyzzyplugh; known: enabled, backup"},
		{"unknown key at the top", head + "sepc: {}\n", "c.yaml:3: unknown key sepc; did you mean spec?"},
		{"unknown key in a list", head + "spec:\n  storageClasses:\n    extra:\n    - {nmae: x}\n", "c.yaml:6: unknown key spec.storageClasses.extra[0].nmae; did you mean name?"},
		{"unknown key in a map's value", head + "spec: {images: {driver: {tagg: x}}}\n", "c.yaml:3: unknown key spec.images.driver.tagg; did you mean tag?"},
		{"unknown key of a snapshot class", head + "spec:\n  snapshots:\n    classes:\n      weekly: {deletionPolcy: Retain}\n", "c.yaml:6: unknown key spec.snapshots.classes.weekly.deletionPolcy; did you mean deletionPolicy?"},
		{"case counts", head + "spec: {ClusterID: x}\n", "c.yaml:3: unknown key spec.ClusterID; did you mean clusterID?"},
		{"a number where text is wanted", head + "spec: {kubernetesVersion: 1.30}\n", `c.yaml:3: spec.kubernetesVersion: want text; write it in quotes: "1.30"`},
		{"a truth value where text is wanted", head + "spec: {storageClasses: {overrides: {a: {parameters: {x: true}}}}}\n", `want text; write it in quotes: "true"`},
		{"a number as key", head + "spec:\n  topology:\n    zoneMap: {1: az1}\n", `c.yaml:5: spec.topology.zoneMap: want text as key; write it in quotes: "1"`},
		{"a truth value as key", head + "spec: {roles: {node: {podLabels: {true: x}}}}\n", `c.yaml:3: spec.roles.node.podLabels: want text as key; write it in quotes: "true"`},
		{"a merge key", head + "metadata: &m {name: x}\nspec: {<<: *m}\n", "c.yaml:4: spec: merge keys (<<) are not read"},
		{"nothing as key", head + "~: x\n", `c.yaml:3: the document: want text as key; write it in quotes: "~"`},
		{"a date where text is wanted", head + "spec: {clusterID: 2026-01-02}\n", `want text; write it in quotes: "2026-01-02"`},
		{"text where a number is wanted", head + "spec: {driver: {logLevel: high}}\n", "c.yaml:3: spec.driver.logLevel: want a whole number"},
		{"text where a truth value is wanted", head + "spec: {trustedCA: 'yes'}\n", "c.yaml:3: spec.trustedCA: want true or false"},
		{"an object where a list is wanted", head + "spec: {storageClasses: {include: {}}}\n", "spec.storageClasses.include: want a list"},
		{"a list where an object is wanted", head + "spec: []\n", "c.yaml:3: spec: want an object"},
		{"an image of no container", head + "spec: {images: {reziser: {tag: x}}}\n", "c.yaml:3: unknown key spec.images.reziser; did you mean resizer?"},
		{"a mistake in an affinity", head + "spec: {roles: {node: {affinity: {nodeAfinity: {}}}}}\n", "c.yaml:3: unknown key spec.roles.node.affinity.nodeAfinity; did you mean nodeAffinity?"},
		{"a truth value as share of pods", head + "spec: {roles: {node: {updateStrategy: {rollingUpdate: {maxUnavailable: true}}}}}\n", `want a whole number or a share such as "10%"`},
		{"a fraction as limit", head + "spec: {volumeAttachLimit: 1.5}\n", "spec.volumeAttachLimit: want a whole number or auto"},
		{"a key twice", head + "spec: {}\nspec: {}\n", "c.yaml:4: the key spec is here a second time; the first is in line 3. Keep one"},
		{"brackets without an end", "a: [", "c.yaml:1: a list or an object in brackets has no end, or lacks a comma"},
		{"a tab after a line with spaces", head + "spec:\n  clusterID: x\n\tdriver: {}\n", "c.yaml:5: a tab indents this line, and YAML allows spaces only"},
		{"a tab", head + "spec:\n\tclusterID: x\n", "c.yaml:4: a tab indents this line, and YAML allows spaces only"},
		{"a reserved character", head + "spec: {clusterID: @x}\n", "c.yaml:3: a value begins with a character that YAML reserves, such as @, ` or %; write the value in quotes"},
		{"a key that is indented less", head + "spec:\n  driver:\n logLevel: 2\n", "a key or an item near this line is not indented like those above it"},
		{"a second colon", head + "spec:\n  clusterID: a: b\n", "c.yaml:4: no YAML: a second colon in one line"},
		{"quotes without an end", head + "spec: {clusterID: 'x}\n", "a text in quotes has no end"},
		{"an anchor that is not there", head + "spec: *b\n", "c.yaml: *b refers to an anchor &b that the file does not have"},
		{"a program", "\x7fELF\x02\x01\x00\x00\xff", "c.yaml: is no text in UTF-8; want YAML or JSON"},
		{"a control character", "a: \x07\n", "holds a control character, which YAML does not allow"},
		{"a line of its own", head + "\"x\\n::notice::y\": 1\n", "c.yaml:3: unknown key x ::notice::y"},
		{"a character that turns a line", head + "spec:\n  clusterID: a\u202eb\n", "c.yaml:4: holds U+202E, which nobody sees"},
		{"the same, escaped", head + "spec: {roles: {node: {podLabels: {\"a\\u200b\": x}}}}\n", "c.yaml:3: holds U+200B, which nobody sees"},
		{"in a comment", head + "# a\u202eb\nspec: {}\n", "c.yaml:3: holds U+202E, which nobody sees"},
		{"UTF-16", "\xff\xfe" + regexp.MustCompile(`(?s).`).ReplaceAllString(head, "$0\x00"), "c.yaml: is no text in UTF-8"},
		{"another line for YAML", head + "# see the wiki\u2028spec: {clusterID: x}\n", "c.yaml:3: holds U+2028, which nobody sees"},
		{"another paragraph", head + "# see the wiki\u2029spec: {clusterID: x}\n", "c.yaml:3: holds U+2029, which nobody sees"},
		{"a line end of old machines", head + "# see the wiki\u0085spec: {clusterID: x}\n", "c.yaml:3: holds U+0085, which nobody sees"},
		{"a line end of others", head + "# see the wiki\rspec: {clusterID: x}\r\n", "c.yaml:3: holds U+000D, which nobody sees"},
		{"letters that are hidden in a comment", head + "# a\U000e0061\nspec: {}\n", "c.yaml:3: holds U+E0061, which nobody sees"},
		{"an anchor that shows a joiner", head + "spec: {clusterID: &a\u200d x}\n", "c.yaml"},
		{"a filler of Hangul", head + "spec: {clusterID: a\u3164}\n", "c.yaml:3: holds U+3164, which nobody sees"},
		{"a half of one", head + "spec: {clusterID: a\uffa0}\n", "c.yaml:3: holds U+FFA0, which nobody sees"},
		{"a lead of one", head + "spec: {clusterID: a\u115f}\n", "c.yaml:3: holds U+115F, which nobody sees"},
		{"a vowel of one, escaped", head + "spec: {clusterID: \"a\\u1160\"}\n", "c.yaml:3: holds U+1160, which nobody sees"},
		{"Braille without a dot", head + "spec: {clusterID: a\u2800}\n", "c.yaml:3: holds U+2800, which nobody sees"},
		{"a joiner", head + "spec: {clusterID: a\u034fb}\n", "c.yaml:3: holds U+034F, which nobody sees"},
		{"a variant", head + "spec: {clusterID: a\ufe0f}\n", "c.yaml:3: holds U+FE0F, which nobody sees"},
		{"another variant", head + "spec: {clusterID: a\U000e0100}\n", "c.yaml:3: holds U+E0100, which nobody sees"},
		{"a key without end", head + "spec: {storageClasses: {overrides: {" + strings.Repeat("容", longestKey+1) + ": {}}}}\n", "spec.storageClasses.overrides: the key \"容容"},
		{"a pattern without end", head + "spec: {storageClasses: {exclude: [a, " + strings.Repeat("x*", longestPattern) + "]}}\n", "has more than 255 letters"},
		{"a key of the spec at the top", head + "clusterID: x\n", "c.yaml:3: unknown key clusterID; it belongs below spec"},
		{"a key of the spec elsewhere", head + "spec: {snapshots: {clusterID: x}}\n", "c.yaml:3: unknown key spec.snapshots.clusterID; known: enabled"},
		{"an image as text", head + "spec: {images: {driver: registry.example.com/x:v1}}\n", "c.yaml:3: spec.images.driver: want an object with keys of registry, repository, tag, digest, pullPolicy"},
		{"a truth value where an object can be enabled", head + "spec: {snapshots: false}\n", "c.yaml:3: spec.snapshots: want an object; write {enabled: false}"},
		{"a truth value where an object cannot", head + "spec: {monitoring: true}\n", "c.yaml:3: spec.monitoring: want an object with keys of kind, alerts"},
		{"a number in quotes", head + "spec: {driver: {logLevel: \"2\"}}\n", "c.yaml:3: spec.driver.logLevel: want a whole number; write it without quotes: 2"},
		{"a truth value in quotes", head + "spec: {trustedCA: \"true\"}\n", "c.yaml:3: spec.trustedCA: want true or false; write it without quotes: true"},
		{"a truth value of old YAML", head + "spec: {trustedCA: Yes}\n", "c.yaml:3: spec.trustedCA: want true or false; write true"},
		{"one text where a list is wanted", head + "spec: {storageClasses: {include: fast}}\n", "c.yaml:3: spec.storageClasses.include: want a list; write [fast]"},
		{"one pattern where a list is wanted", head + "spec: {storageClasses: {include: '*'}}\n", `c.yaml:3: spec.storageClasses.include: want a list; write ["*"]`},
		{"a list as document", "- a\n", "c.yaml:1: want an object with apiVersion and kind"},
		{"two documents", head + "---\n" + head, "c.yaml: holds more than one document"},
		{"another kind", "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Plan\n", `kind is "Plan"; want Distribution`},
		{"another group", "apiVersion: v1\nkind: Distribution\n", `apiVersion is "v1"; want generator.cinder-csi.io/v1alpha1`},
	}
	for _, c := range cases {
		_, err := DecodeDistribution("c.yaml", []byte(c.text))
		var wrong *DecodeError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want a DecodeError with %q, got %v", c.name, c.want, err)
		}
	}
}

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	_, err := DecodeDistribution("c.yaml", []byte(head+"spec:\n  topolgy: {}\n  driver: {logLevel: x}\n"))
	var wrong *DecodeError
	if !errors.As(err, &wrong) || len(wrong.Problems) != 2 {
		t.Errorf("want two problems, got %v", err)
	}
}

func TestADocumentOfANewerGeneratorIsNoMistake(t *testing.T) {
	_, err := DecodePlan("plan.yaml", []byte("apiVersion: generator.cinder-csi.io/v1beta1\nkind: Plan\ngenerator: v2.0.0\nnews: 1\n"))
	var newer *NewerError
	if !errors.As(err, &newer) || !strings.Contains(err.Error(), "made by newer cinder-csi-generator v2.0.0") {
		t.Errorf("want a NewerError that names v2.0.0, got %v", err)
	}
	_, err = DecodeDistribution("c.yaml", []byte("apiVersion: generator.cinder-csi.io/v1\nkind: Distribution\n"))
	if !errors.As(err, &newer) || !strings.Contains(err.Error(), "made by newer generator.cinder-csi.io/v1;") {
		t.Errorf("want a NewerError, got %v", err)
	}
}

func TestAnInventoryMustSayWhatItKnows(t *testing.T) {
	const empty = "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Inventory\n"
	if _, err := DecodeInventory("i.yaml", []byte(empty)); err == nil || !strings.Contains(err.Error(), `zones.volume.state: "" is none of`) {
		t.Errorf("want missing facts to be named, got %v", err)
	}
	for _, address := range []string{"https://user:hunter2@keystone.example/v3", "https://user:hunter2@[keystone/v3"} {
		_, err := DecodeInventory("i.yaml", []byte(empty+"cloud: {authURL: '"+address+"'}"))
		if err == nil || !strings.Contains(err.Error(), "cloud.authURL: want a URL without credentials") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("want the credentials to be refused and not repeated, got %v", err)
		}
	}
	for _, text := range []string{"", "{}"} {
		if _, err := DecodeInventory("i.yaml", []byte(text)); err == nil {
			t.Errorf("%q: want an error", text)
		}
	}
}

func TestWhatIsWrittenAsYAMLReadsBackTheSameAndStaysText(t *testing.T) {
	texts := []string{"", "a", "no", "y", "1.30", "1_000", "12:30", "0x1f", "2026-01-02", "null", "~", "true", "- a", "a: b", "#c", "'", "\"", "a\nb\n", "a\nb", " a", "a ", "\t", "é日\u2028", "<&>", "*x", "@", "{", "%", "<<", "=", "\tfast\n\tssd", " a\nb", "\n", "\na", "a\n\n", "a \nb", "a\r\nb", "\u0085a\nb", "\ufeffa", "a: b\n- c", "# a\nb", "---\na", "...\n"}
	want := Plan{APIVersion: APIVersion, Kind: KindPlan}
	for _, s := range texts {
		want.Decisions = append(want.Decisions, Decision{ID: s, Value: map[string]any{s: s}, Facts: []NamedFact{{s, s}}})
	}
	for name, encode := range map[string]func(any) ([]byte, error){"YAML": YAML, "JSON": JSON} {
		text, err := encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodePlan("plan.yaml", text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func FuzzWhatIsWrittenAsYAMLReadsBackTheSame(f *testing.F) {
	for _, s := range []string{"<<", "=", "\tfast\n\tssd", "a\n b", "\u2028\n", "-\n-", "a\x00", "\x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || len(s) > longestKey {
			return
		}
		want := Plan{APIVersion: APIVersion, Kind: KindPlan, Decisions: []Decision{{ID: s, Value: map[string]any{s: s, "in": []any{s, map[string]any{"a": s}}}, Facts: []NamedFact{{s, s}}}}}
		text, err := YAML(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodePlan("plan.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, text)
		}
	})
}

func TestAPlansValueThatJSONCannotHoldIsNamed(t *testing.T) {
	const plan = "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Plan\ndecisions:\n- id: a\n  value: [{b: {1: x}}]\n"
	_, err := DecodePlan("plan.yaml", []byte(plan))
	if want := `plan.yaml:5: decisions[0].value[0].b: want text as key; write it in quotes: "1"`; err == nil || err.Error() != want {
		t.Errorf("want %s, got %v", want, err)
	}
}

func FuzzDecodeDistribution(f *testing.F) {
	f.Add([]byte(head + "spec: {topology: {zoneMap: {a: b}}, volumeAttachLimit: 20}"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("{? [a] : b}"))
	f.Add([]byte("spec: &s {topology: {}}\nmetadata: *s"))
	f.Fuzz(func(t *testing.T, data []byte) { again(t, data, DecodeDistribution) })
}

func FuzzDecodeInventory(f *testing.F) {
	f.Add([]byte("apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Inventory\nzones: {compute: {state: known, value: [{name: a, available: true}]}}"))
	f.Fuzz(func(t *testing.T, data []byte) { again(t, data, DecodeInventory) })
}

func FuzzDecodePlan(f *testing.F) {
	f.Add([]byte("apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Plan\ndecisions: [{id: a, value: {b: [1, x, null]}}]\nfiles: [{path: a, sha256: b}]"))
	f.Fuzz(func(t *testing.T, data []byte) { again(t, data, DecodePlan) })
}

// again: what was decoded is encoded and decoded to the same.
func again[T any](t *testing.T, data []byte, decode func(string, []byte) (T, error)) {
	first, err := decode("fuzz", data)
	if err != nil {
		return
	}
	text, err := YAML(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := decode("again", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	one, _ := JSON(first)
	two, _ := JSON(second)
	if diff := cmp.Diff(string(one), string(two)); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}
