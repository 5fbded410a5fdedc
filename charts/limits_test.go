package charts_test

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// object is an object of JSON whose keys have an order, so that the schema has the order of values.yaml.
type object []field

type field struct {
	key   string
	value any // object, []any or a scalar
}

func (o object) at(key string) any {
	if i := slices.IndexFunc(o, func(f field) bool { return f.key == key }); i >= 0 {
		return o[i].value
	}
	return nil
}

// ordered reads a YAML file whose keys keep their order.
func ordered(t *testing.T, name string) object {
	t.Helper()
	text := testfile.Read(t, name)
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	fields, isObject := fromNode(t, document.Content[0]).(object)
	if !isObject {
		t.Fatalf("%s is no object", name)
	}
	return fields
}

func fromNode(t *testing.T, n *yaml.Node) any {
	t.Helper()
	switch n.Kind {
	case yaml.MappingNode:
		o := object{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			o = append(o, field{n.Content[i].Value, fromNode(t, n.Content[i+1])})
		}
		return o
	case yaml.SequenceNode:
		l := []any{}
		for _, e := range n.Content {
			l = append(l, fromNode(t, e))
		}
		return l
	}
	var scalar any
	if err := n.Decode(&scalar); err != nil {
		t.Fatal(err)
	}
	return scalar
}

// schemaMaker makes values.schema.json of values.yaml, of limits.yaml, which has what a default cannot say, of v1alpha1.Settings and of the keys of
// other charts.
type schemaMaker struct {
	t                    *testing.T
	values, limits       object
	used                 map[string]bool // limits
	definitions, foreign object
}

func makeSchema(t *testing.T) string {
	t.Helper()
	file := ordered(t, "limits.yaml")
	m := schemaMaker{
		t: t, values: ordered(t, valuesFile), used: map[string]bool{}, foreign: ordered(t, foreignFile),
		limits: file.at("values").(object), definitions: file.at("definitions").(object),
	}
	of := m.object("", m.values)
	properties := slices.Concat(file.at("more").(object), of.at("properties").(object))
	tops := []string{}
	for _, f := range m.foreign {
		top, _, below := strings.Cut(f.key, ".")
		if slices.Contains(tops, top) {
			continue
		}
		tops = append(tops, top)
		description := fmt.Sprintf("refused: this chart has %v", f.value)
		if below {
			description = "refused: this chart has other keys for it"
		}
		properties = append(properties, field{top, object{{"description", description}}})
	}
	root := object{
		{"$schema", "http://json-schema.org/draft-07/schema#"},
		{"title", "Values of the cinder-csi chart"},
		{"type", "object"},
		{"additionalProperties", false},
		{"required", file.at("required")},
		{"patternProperties", object{{"^x-", object{}}}}, // where people keep the anchors of their YAML
		{"properties", properties},
	}
	var all object
	for _, f := range m.definitions {
		all = append(all, field{f.key, whole(f.value)})
	}
	root = append(root, field{"definitions", append(all, kubernetes()...)})
	for _, f := range m.limits {
		if !m.used[f.key] {
			t.Errorf("limits.yaml: values.yaml has nothing at %s", f.key)
		}
	}
	return pretty(t, root, "") + "\n"
}

// limit is what limits.yaml has for a key.
func (m schemaMaker) limit(key string) any {
	for _, f := range m.limits {
		pattern := strings.ReplaceAll(f.key, ".", "/")
		if is, err := path.Match(pattern, strings.ReplaceAll(key, ".", "/")); err != nil {
			m.t.Fatal(err)
		} else if is {
			m.used[f.key] = true
			return f.value
		}
	}
	return nil
}

// object is the schema of a value with keys.
func (m schemaMaker) object(at string, fields object) object {
	properties := object{}
	for _, f := range fields {
		properties = append(properties, field{f.key, m.of(strings.TrimPrefix(at+"."+f.key, "."), f.value)})
	}
	closed := object{{"type", "object"}, {"additionalProperties", false}}
	more, _ := m.limit(at).(object)
	return slices.Concat(closed, more, object{{"properties", properties}})
}

// of is the schema of a value.
func (m schemaMaker) of(key string, value any) any {
	if i := slices.IndexFunc(v1alpha1.Settings, func(s v1alpha1.Setting) bool { return s.Key == key }); i >= 0 {
		return boundsSchema(m.t, v1alpha1.Settings[i].Bounds)
	}
	limit := m.limit(key)
	fields, _ := value.(object)
	if key == "chartVersion" {
		return object{{"const", value}}
	}
	if _, isName := limit.(string); len(fields) > 0 && !isName {
		return m.object(key, fields)
	}
	if o, isObject := limit.(object); isObject && o.at("byContainer") != nil {
		return m.byContainer(key, o)
	}
	if limit != nil {
		return whole(limit)
	}
	switch value.(type) {
	case bool:
		return object{{"type", "boolean"}}
	case int:
		return object{{"type", "integer"}}
	case string:
		return object{{"type", "string"}}
	}
	m.t.Errorf("limits.yaml does not say what %s may be", key)
	return nil
}

// boundsSchema is the schema of a setting of the table.
func boundsSchema(t *testing.T, bounds v1alpha1.Bounds) map[string]any {
	t.Helper()
	switch b := bounds.(type) {
	case v1alpha1.Number:
		s := map[string]any{"type": "integer", "minimum": b.Min}
		if b.Max > 0 {
			s["maximum"] = b.Max
		}
		return s
	case v1alpha1.OneOf:
		return map[string]any{"enum": b}
	case v1alpha1.Text:
		return map[string]any{"anyOf": []any{map[string]any{"const": ""}, map[string]any{"type": "string", "pattern": b.Pattern.String()}}}
	case v1alpha1.Switch:
		return map[string]any{"type": "boolean"}
	case v1alpha1.AutoSwitch:
		return map[string]any{"enum": []any{false, true, v1alpha1.Strict}}
	case v1alpha1.Duration: // a schema has no bounds for durations
		var all []string
		for d := b.Min; d <= b.Max; d += time.Second {
			all = append(all, fmt.Sprintf("%ds", d/time.Second))
		}
		return map[string]any{"enum": all}
	case v1alpha1.Directory:
		return map[string]any{"type": "string", "pattern": `^(/[^/$:\s]+)+$`}
	case v1alpha1.Pairs:
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string", "maxLength": 255, "pattern": `^[^,"\n]*$`}}
	}
	t.Errorf("no schema for bounds of type %T", bounds)
	return nil
}

// byContainer is the schema of a value of a role whose keys are the containers of the role.
func (m schemaMaker) byContainer(key string, limit object) object {
	role, _, _ := strings.Cut(key, ".")
	without, _ := limit.at("without").([]any)
	properties := object{}
	for _, image := range m.values.at("images").(object).at(role).(object) {
		if !slices.Contains(without, any(image.key)) {
			properties = append(properties, field{image.key, whole(limit.at("byContainer"))})
		}
	}
	return object{{"type", "object"}, {"additionalProperties", false}, {"properties", properties}}
}

// whole is a limit with the short forms written out.
func whole(limit any) any {
	switch l := limit.(type) {
	case string:
		return object{{"$ref", "#/definitions/" + l}}
	case []any:
		return object{{"type", "array"}, {"items", whole(l[0])}}
	}
	return limit
}

// pretty is a value as JSON: what fits into a line stands in one.
func pretty(t *testing.T, value any, indent string) string {
	t.Helper()
	line := oneLine(t, value)
	o, isObject := value.(object)
	if !isObject || len(indent)+len(line) <= 140 {
		return line
	}
	var fields []string
	for _, f := range o {
		fields = append(fields, fmt.Sprintf("%s  %q: %s", indent, f.key, pretty(t, f.value, indent+"  ")))
	}
	return "{\n" + strings.Join(fields, ",\n") + "\n" + indent + "}"
}

func oneLine(t *testing.T, value any) string {
	t.Helper()
	switch v := value.(type) {
	case object:
		var fields []string
		for _, f := range v {
			fields = append(fields, jsonOf(t, f.key)+": "+oneLine(t, f.value))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	case []any:
		var elements []string
		for _, e := range v {
			elements = append(elements, oneLine(t, e))
		}
		return "[" + strings.Join(elements, ", ") + "]"
	}
	return jsonOf(t, value)
}

func TestTheSchemaIsMadeOfTheValuesTheirLimitsAndTheSettings(t *testing.T) {
	want := makeSchema(t)
	if !json.Valid([]byte(want)) {
		t.Fatal("the schema is no JSON")
	}
	if *update {
		testfile.Write(t, schemaFile, want, 0o644)
	}
	got := testfile.Read(t, schemaFile)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s: `make update` writes it of values.yaml, limits.yaml and v1alpha1.Settings (-want +got):\n%s", schemaFile, diff)
	}
}
