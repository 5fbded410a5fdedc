package v1alpha1

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/documents"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// NewerError says that a document was written by a newer generator than this one.
type NewerError struct {
	File       string
	APIVersion string
	Generator  string // the version that a Plan names, else empty
}

func (e *NewerError) Error() string {
	by := e.APIVersion
	if e.Generator != "" {
		by = "cinder-csi-generator " + e.Generator + " (" + e.APIVersion + ")"
	}
	return printable.Line(fmt.Sprintf("%s: made by newer %.200s; this generator reads %s: use one that is at least as new", e.File, by, APIVersion))
}

// DecodeError holds everything that is wrong with a document, each with its line.
type DecodeError struct{ Problems []string }

func (e *DecodeError) Error() string { return printable.Lines("\n", e.Problems) }

// HasRows says that the error has rows on purpose, as that of [printable.Rows].
func (*DecodeError) HasRows() {}

// DecodeDistribution reads a configuration, YAML or JSON; file is its name for messages. apiVersion and kind may be left out.
// Errors: *DecodeError, *NewerError.
func DecodeDistribution(file string, data []byte) (Distribution, error) {
	d := Distribution{APIVersion: APIVersion, Kind: KindDistribution}
	if err := decode(file, data, &d, header{KindDistribution, false, mostItems}); err != nil {
		return d, err
	}
	return d, d.checkPatterns(file)
}

// checkPatterns refuses patterns that fit no volume type. Each is compared with every one.
func (d Distribution) checkPatterns(file string) error {
	in := &decoder{file: file}
	for _, p := range slices.Concat(d.Spec.StorageClasses.Include, d.Spec.StorageClasses.Exclude) {
		if utf8.RuneCountInString(p) > longestPattern {
			in.problem(0, "spec.storageClasses: %.40q... has more than %d letters, which no name of a volume type has", p, longestPattern)
		}
	}
	return in.err()
}

// DecodeInventory reads a saved inventory, as DecodeDistribution does.
func DecodeInventory(file string, data []byte) (Inventory, error) {
	var i Inventory
	if err := decode(file, data, &i, header{KindInventory, true, MostTypes}); err != nil {
		return Inventory{}, err
	}
	return i, i.check(file)
}

// DecodePlan reads a plan, as DecodeDistribution does.
func DecodePlan(file string, data []byte) (Plan, error) {
	var p Plan
	return p, decode(file, data, &p, header{KindPlan, true, mostDecisions})
}

// check refuses states that are none, which would read as "failed" and be blamed on the cloud, and a secret, which would be copied.
func (i Inventory) check(file string) error {
	d := &decoder{file: file}
	states := map[string]State{
		"services.state": i.Services.State, "zones.compute.state": i.Zones.Compute.State, "zones.volume.state": i.Zones.Volume.State,
		"volumeTypes.state": i.VolumeTypes.State, "defaultVolumeType.state": i.DefaultVolumeType.State, "limits.state": i.Limits.State,
		"quota.state": i.Quota.State, "groupTypes.state": i.GroupTypes.State, "backup.state": cmp.Or(i.Backup.State, Unsupported), // may be absent
	}
	for name, s := range i.Services.Value {
		states["services.value."+name+".versions"] = cmp.Or(s.Versions, Known)
	}
	for name, state := range states {
		switch state {
		case Known, Denied, Unsupported, Failed:
		default:
			d.problem(0, "%s: %.100q is none of known, denied, unsupported, failed", name, string(state))
		}
	}
	if u, err := url.Parse(i.Cloud.AuthURL); err != nil || u.User != nil { // neither message may repeat the value
		d.problem(0, "cloud.authURL: want a URL without credentials: it is written into every bundle")
	}
	return d.err()
}

// header is what a document must say of itself.
type header struct {
	kind     string
	required bool
	items    int // that a list may have
}

// MostTypes are the volume types that a bundle is made for. Verification of 2,000 takes 13 s of a processor.
const MostTypes = 5_000

// mostDecisions are what a plan may have: one of MostTypes has some 5,100. Those of two plans are compared with each other.
const mostDecisions = 8_000

// mostItems are what a list of a configuration may have. Its items are compared with each other, and a person wrote them.
const mostItems = 2_000

// What people write is compared with every name of a cloud. Cinder's names have 255 letters, and an annotation of Kubernetes has up to 317.
const (
	longestPattern = 255
	longestKey     = 320
	longestText    = 1 << 20 // bytes of a value
)

func decode(file string, data []byte, into any, h header) error {
	d := &decoder{file: file, items: h.items}
	root, value, err := d.parse(data)
	if err != nil {
		return err
	}
	if root == nil {
		if h.required {
			return &DecodeError{Problems: []string{file + ": is empty; want " + h.kind}}
		}
		return nil
	}
	if err := d.header(root, h); err != nil {
		return err
	}
	if h.kind == KindDistribution { // the others have names of a cloud, which each output escapes
		for i, line := range strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n") { // comments too
			d.allow(i+1, strings.TrimSuffix(line, "\r"), misleads)
		}
		if len(d.problems) == 0 {
			d.values(root)
		}
	}
	d.walk(root, reflect.TypeOf(into).Elem(), "")
	if err := d.err(); err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return d.wrap(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return d.wrap(err)
	}
	return nil
}

// allow refuses characters by which a reviewer would read another text than Kubernetes does.
func (d *decoder) allow(line int, text string, refused func(rune) bool) {
	if i := strings.IndexFunc(text, refused); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		d.problem(line, "holds %U, which nobody sees: remove the character", r)
	}
}

// misleads is whether a character of a line, a comment too, turns its direction, begins another line for YAML alone, or is a hidden letter.
// People need other invisible ones in comments: Persian, Japanese names and emoji have them.
func misleads(r rune) bool {
	return unicode.Is(unicode.Bidi_Control, r) || strings.ContainsRune("\r\u0085\u2028\u2029", r) || 0xe0000 <= r && r <= 0xe007f
}

// showsNothing is for values, which Kubernetes compares.
func showsNothing(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == '\u2800' // an empty pattern of Braille
}

// values makes the same of texts that are written with escapes.
func (d *decoder) values(n *yaml.Node) {
	d.allow(n.Line, n.Value, showsNothing)
	for _, child := range n.Content {
		d.values(child)
	}
}

type decoder struct {
	file     string
	items    int      // that a list may have
	problems []string // at most mostProblems
	more     int      // problems that are not listed
	hints    []string // that problems have given
}

func (d *decoder) problem(line int, format string, args ...any) {
	where := d.file
	if line > 0 {
		where = fmt.Sprintf("%s:%d", d.file, line)
	}
	if len(d.problems) == mostProblems {
		d.more++
		return
	}
	d.problems = append(d.problems, where+": "+fmt.Sprintf(format, args...))
}

// mostProblems are what one message lists: more than a person reads at once, and a bound for a text of somebody else.
const mostProblems = 20

func (d *decoder) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	if d.more > 0 {
		return &DecodeError{Problems: append(d.problems, fmt.Sprintf("%s: and %d more", d.file, d.more))}
	}
	return &DecodeError{Problems: d.problems}
}

func (d *decoder) wrap(err error) error {
	return &DecodeError{Problems: []string{d.file + ": " + strings.TrimPrefix(err.Error(), "yaml: ")}}
}

// parse gives the one document of a file, nil for a file without any, and what it holds.
func (d *decoder) parse(data []byte) (root *yaml.Node, value any, err error) {
	if err := documents.Check(data); bytes.IndexByte(data, 0) >= 0 {
		return nil, nil, d.syntax(data, err)
	} else if err != nil {
		return nil, nil, d.wrap(err)
	}
	in := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	switch err := in.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil, nil
	case err != nil:
		return nil, nil, d.syntax(data, err)
	}
	if err := in.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, nil, &DecodeError{Problems: []string{d.file + ": holds more than one document; give one file each"}}
	}
	// Resolving aliases here, where the library counts them, keeps documents that explode from reaching walk.
	if err := document.Decode(&value); err != nil {
		return nil, nil, d.syntax(data, err)
	}
	root = document.Content[0]
	if value == nil {
		return nil, nil, nil
	}
	if root.Kind != yaml.MappingNode {
		d.problem(root.Line, "want an object with apiVersion and kind")
		return nil, nil, d.err()
	}
	return root, value, nil
}

// header checks apiVersion and kind before anything else: keys of a newer version are not mistakes.
func (d *decoder) header(root *yaml.Node, h header) error {
	var apiVersion, kind, generator string
	line := root.Line
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		switch key.Value {
		case "apiVersion":
			apiVersion, line = value.Value, value.Line
		case "kind":
			kind = value.Value
		case "generator":
			generator = value.Value
		}
	}
	group, _, _ := strings.Cut(APIVersion, "/")
	switch {
	case apiVersion == APIVersion, apiVersion == "" && !h.required:
	case strings.HasPrefix(apiVersion, group+"/"): // v1alpha1 is the first version there is
		return &NewerError{File: d.file, APIVersion: apiVersion, Generator: generator}
	case apiVersion == "":
		d.problem(line, "has no apiVersion; want apiVersion: %s and kind: %s", APIVersion, h.kind)
		return d.err()
	default:
		d.problem(line, "apiVersion is %.100q; want %s", apiVersion, APIVersion)
		return d.err()
	}
	if kind != h.kind && (h.required || kind != "") {
		d.problem(root.Line, "kind is %.100q; want %s", kind, h.kind)
	}
	return d.err()
}

// walk compares a node with the type it will be decoded into.
func (d *decoder) walk(n *yaml.Node, t reflect.Type, path string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return // as if it were not written
	}
	switch t {
	case reflect.TypeFor[IntOrAuto]():
		d.scalar(n, path, "a whole number or auto", "!!int", "!!str")
		return
	case reflect.TypeFor[IntOrPercent]():
		d.scalar(n, path, `a whole number or a share such as "10%"`, "!!int", "!!str")
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		if n.Kind != yaml.MappingNode {
			d.problem(n.Line, "%s: %s", path, wantObject(n, t))
			return
		}
		d.object(n, path, func(key, value *yaml.Node, at string) {
			if f, ok := field(t, key.Value); ok {
				d.walk(value, f.Type, at)
				return
			}
			hint := ""
			if len(d.problems) < mostProblems {
				hint = d.once(rightKey(key.Value, t))
			}
			d.problem(key.Line, "unknown key %s%s", at, hint)
		})
	case reflect.Map:
		d.object(n, path, func(_, value *yaml.Node, at string) { d.walk(value, t.Elem(), at) })
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			d.problem(n.Line, "%s: want a list%s", path, asItem(n))
			return
		}
		if len(n.Content) > d.items {
			d.problem(n.Line, "%s: has more than %d items", path, d.items)
			return
		}
		for i, item := range n.Content {
			d.walk(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.String:
		d.scalar(n, path, "text", "!!str")
	case reflect.Bool:
		d.scalar(n, path, "true or false", "!!bool")
	case reflect.Int, reflect.Int64:
		d.scalar(n, path, "a whole number", "!!int")
	case reflect.Interface: // a decision's value: anything that JSON can hold
		d.anything(n, t, path)
	default:
		panic("v1alpha1: no rule for values of type " + t.String())
	}
}

// anything only looks at keys: JSON has no others than text.
func (d *decoder) anything(n *yaml.Node, t reflect.Type, path string) {
	switch n.Kind {
	case yaml.MappingNode:
		d.object(n, path, func(_, value *yaml.Node, at string) { d.walk(value, t, at) })
	case yaml.SequenceNode:
		for i, item := range n.Content {
			d.walk(item, t, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

func (d *decoder) object(n *yaml.Node, path string, each func(key, value *yaml.Node, at string)) {
	if n.Kind != yaml.MappingNode {
		d.problem(n.Line, "%s: want an object", path)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			d.problem(key.Line, "%s: keys are text", path)
			continue
		}
		if key.Tag == "!!merge" {
			d.problem(key.Line, "%s: merge keys (<<) are not read; write the keys out", cmp.Or(path, "the document"))
			continue
		}
		if key.Tag != "!!str" {
			d.problem(key.Line, "%s: want text as key; write it in quotes: %q", cmp.Or(path, "the document"), key.Value)
			continue
		}
		if utf8.RuneCountInString(key.Value) > longestKey {
			d.problem(key.Line, "%s: the key %.40q... has more than %d letters", cmp.Or(path, "the document"), key.Value, longestKey)
			continue
		}
		at := key.Value
		if path != "" {
			at = path + "." + key.Value
		}
		each(key, n.Content[i+1], at)
	}
}

// once is a hint the first time, and nothing when it was given before: the list of all known keys is long.
func (d *decoder) once(hint string) string {
	if slices.Contains(d.hints, hint) {
		return ""
	}
	d.hints = append(d.hints, hint)
	return hint
}

func (d *decoder) scalar(n *yaml.Node, path, want string, tags ...string) {
	if n.Kind == yaml.ScalarNode && slices.Contains(tags, n.Tag) {
		if len(n.Value) > longestText {
			d.problem(n.Line, "%s: has more than %d bytes, which no ConfigMap holds", path, longestText)
		}
		return
	}
	d.problem(n.Line, "%s: want %s%s", path, want, asScalar(n, want, tags))
}

// fieldsByKey are the fields of each struct by their JSON keys. Every decision of a setting looks one up.
var fieldsByKey sync.Map // reflect.Type -> map[string]reflect.StructField

// field finds a struct's field by its JSON key, also in embedded structs.
func field(t reflect.Type, key string) (reflect.StructField, bool) {
	fields, known := fieldsByKey.Load(t)
	if !known {
		byKey := map[string]reflect.StructField{}
		for _, f := range reflect.VisibleFields(t) {
			if k := jsonKey(f); k != "" {
				byKey[k] = f
			}
		}
		fields, _ = fieldsByKey.LoadOrStore(t, byKey)
	}
	f, found := fields.(map[string]reflect.StructField)[key]
	return f, found
}

// keys are a struct's JSON keys, in order.
func keys(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if k := jsonKey(f); k != "" {
			names = append(names, k)
		}
	}
	return names
}

// jsonKey is empty for embedded structs, whose fields are their parent's.
func jsonKey(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func didYouMean(key string, known []string) string {
	if n, near := contract.Nearest(key, known); near {
		return "; did you mean " + n + "?"
	}
	return "; known: " + strings.Join(known, ", ")
}

// former are keys, by type, that documents from before the first release have. It holds what they are called now.
var former = map[string]string{"Spec.planes": "roles"}

// rightKey ends the message about a key that a type does not have.
func rightKey(key string, t reflect.Type) string {
	if now := former[t.Name()+"."+key]; now != "" {
		return "; it is now called " + now
	}
	if _, inSpec := field(reflect.TypeFor[Spec](), key); inSpec && t == reflect.TypeFor[Distribution]() {
		return "; it belongs below spec"
	}
	return didYouMean(key, keys(t))
}

// UnmarshalJSON reads a number or a string.
func (v *IntOrAuto) UnmarshalJSON(data []byte) error {
	*v = IntOrAuto(numberOrText(data))
	return nil
}

// UnmarshalJSON reads a number or a string.
func (v *IntOrPercent) UnmarshalJSON(data []byte) error {
	*v = IntOrPercent(numberOrText(data))
	return nil
}

func numberOrText(data []byte) string {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	if text == "null" {
		return ""
	}
	return text
}
