package migrate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
	"github.com/cinder-csi/cinder-csi/internal/documents"
)

// document is a part of a file in one of the two syntaxes.
type document struct {
	file   string          // the name of its file
	source string          // the argument that gave the file
	yaml   map[string]any  // a YAML mapping
	conf   *cloudconf.File // or the INI dialect of cloud.conf
	inText bool            // it is, or was made of, a text or a part of another object
	live   bool            // the driver of a cluster has it mounted, or it runs there
	within string          // the namespace of the object whose text it is; that text may name another

	carried   bool   // values of upstream's chart for certain: they stand beside its name
	partly    bool   // they change other values, so what they leave out says nothing
	elsewhere string // what to give import besides

	beside []Note // keys of the tool that holds the values
}

// header is a section of cloud.conf, such as [Global].
var header = regexp.MustCompile(`(?m)^[ \t]*\[[A-Za-z]+([ \t]+"[^"\n]*")?[ \t]*\]`)

// open parses a file: a cloud.conf, or YAML with any number of documents and lists of objects. Its errors name lines and never quote them.
func open(f File) ([]document, error) {
	if f.live != nil {
		var all []document
		for _, object := range f.live {
			withoutSecrets(object)
			all = append(all, document{file: f.Name, source: f.source(), yaml: object, live: true})
		}
		return all, nil
	}
	f.Content = bytes.TrimPrefix(f.Content, []byte("\ufeff"))
	if first := firstLine(f.Content); header.Match(first) && !bytes.HasPrefix(bytes.TrimSpace(first), []byte("{")) {
		conf, err := cloudconf.Parse(f.Content)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFile, f.Name, err)
		}
		return []document{{file: f.Name, source: f.source(), conf: conf}}, nil
	}
	if err := documents.Check(f.Content); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFile, f.Name, err)
	}
	var all []document
	for _, part := range split(f.Content) {
		var content map[string]any
		text := helmHead.ReplaceAll(part.text, nil)
		if len(text) < len(part.text) { // with its head, a text of Helm is no YAML that could be checked
			if err := documents.Check(text); err != nil {
				return nil, fmt.Errorf("%w: %s: %w", ErrFile, f.Name, err)
			}
		}
		if len(text) < len(part.text) && string(bytes.TrimSpace(text)) == "null" { // a release without values of its own
			all = append(all, document{file: f.Name, source: f.source(), yaml: map[string]any{}, carried: true})
			continue
		}
		err := yaml.UnmarshalStrict(text, &content)
		var plays []map[string]any // of Ansible
		if err != nil && strings.Contains(err.Error(), "cannot unmarshal array") && yaml.UnmarshalStrict(text, &plays) == nil {
			content, err = map[string]any{"plays": jsonValue(plays)}, nil
		}
		switch {
		case helmRelease.Match(part.text) && bytes.Contains(part.text, []byte("USER-SUPPLIED VALUES:")):
			return nil, fmt.Errorf("%w: %s: it is the output of helm get all; give that of helm get values", ErrFile, f.Name)
		case err == nil:
		case bytes.Contains(part.text, []byte("{{")), bytes.Contains(part.text, []byte("{%")):
			return nil, fmt.Errorf("%w: %s: it looks like a template; give import what it renders%s", ErrFile, f.Name, part.lineOf(err))
		default:
			return nil, fmt.Errorf("%w: %s: it is neither cloud.conf, which begins with a section such as [Global], nor YAML mappings without repeated keys%s",
				ErrFile, f.Name, part.lineOf(err)+repeatedKey(err))
		}
		if content["sops"] != nil {
			return nil, fmt.Errorf("%w: %s: it is encrypted by SOPS; decrypt it first: sops --decrypt", ErrFile, f.Name)
		}
		for _, object := range listed(content) {
			withoutSecrets(object)
			templated(object)
			d := document{file: f.Name, source: f.source(), yaml: object}
			inside, err := carried(d)
			if err != nil {
				return nil, err
			}
			below, err := ofParent(d)
			if err != nil {
				return nil, err
			}
			if inside = append(inside, below...); len(inside) == 0 {
				inside = []document{d}
			} else {
				for i := range inside {
					inside[i].inText, inside[i].within = true, cmp.Or(d.namespace(), inside[i].within)
				}
			}
			all = append(all, inside...)
		}
	}
	return all, nil
}

// helmHead is what helm get values prints above them.
var helmHead = regexp.MustCompile(`(?m)\A(?:[ \t]*(?:#.*)?\r?\n)*(?:USER-SUPPLIED|COMPUTED) VALUES:[ \t]*\r?$`)

// helmRelease is in what helm get all and helm status print.
var helmRelease = regexp.MustCompile(`(?m)^(?:HOOKS|MANIFEST|LAST DEPLOYED):`)

// ofParent are the values of upstream's chart in those of a parent chart. They stand below its name, or are one mapping with keys of the chart alone.
func ofParent(d document) ([]document, error) {
	if d.yaml["kind"] != nil || isValues(d) {
		return nil, nil
	}
	var found []document
	var names []string
	var beside []Note
	for _, key := range slices.Sorted(maps.Keys(d.yaml)) {
		inside, _ := d.yaml[key].(map[string]any)
		if key == upstreamChart && len(inside) > 0 || areOwn(inside) && key != "csimanila" { // a chart beside this one has clusterID there
			names, found = append(names, key), append(found, document{file: d.file + " " + key, source: d.source, yaml: inside, carried: true})
			continue
		}
		beside = append(beside, Note{Key: "beside it, " + key, Why: "it is no value of upstream's chart"})
	}
	switch {
	case len(found) > 1:
		return nil, fmt.Errorf("%w: %s: values of the chart %s stand below %s, and a bundle is for one installation. Give import one of them as a file", ErrFile, d.file, upstreamChart, strings.Join(names, " and "))
	case len(found) == 1:
		found[0].beside = beside
	}
	return found, nil
}

// areOwn reports whether a mapping has values of this chart, and keys of no other.
func areOwn(values map[string]any) bool {
	id, _ := values["clusterID"].(string)
	return (id != "" || values["clusterID"] == nil) && isValues(document{yaml: values}) &&
		!slices.ContainsFunc(slices.Collect(maps.Keys(values)), func(key string) bool { return !isChartKey(key) })
}

// areSurelyOwn is areOwn for values beside which no name of a chart stands. Other charts have clusterID, secret and storageClass, too, but not the
// sidecars below csi.
func areSurelyOwn(values map[string]any) bool {
	csi, _ := values["csi"].(map[string]any)
	return len(csi) > 0 && areOwn(values)
}

// isConfText reports whether a text is a cloud.conf.
func isConfText(text string) bool { return header.Match(firstLine([]byte(text))) }

// listed are the objects of a list, or the mapping itself. The items of a typed list such as ConfigMapList may lack their kind.
func listed(content map[string]any) []map[string]any {
	kind, _ := content["kind"].(string)
	items, isList := content["items"].([]any)
	if !strings.HasSuffix(kind, "List") || !isList {
		if len(content) == 0 {
			return nil
		}
		return []map[string]any{content}
	}
	var all []map[string]any
	for _, item := range items {
		object, _ := item.(map[string]any)
		if object == nil {
			continue
		}
		if of := strings.TrimSuffix(kind, "List"); of != "" && object["kind"] == nil {
			object["kind"], object["apiVersion"] = of, content["apiVersion"]
		}
		all = append(all, listed(object)...)
	}
	return all
}

// part is one document of a YAML file.
type part struct {
	text   []byte
	before int // lines of the file above it
}

// split cuts a file at the lines that separate YAML documents.
func split(content []byte) []part {
	parts := []part{{}}
	begin, line := 0, 0
	for at := 0; at < len(content); line++ {
		end := len(content)
		if i := bytes.IndexByte(content[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if separator.Match(content[at:end]) {
			parts[len(parts)-1].text = content[begin:at]
			parts = append(parts, part{before: line})
			begin = at
		}
		at = end
	}
	parts[len(parts)-1].text = content[begin:]
	return parts
}

var separator = regexp.MustCompile(`^---[ \t\r]*(#.*)?\n?$`)

// firstLine is the first line with a setting.
func firstLine(content []byte) []byte {
	for line := range bytes.Lines(content) {
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && trimmed[0] != '#' && trimmed[0] != ';' {
			return line
		}
	}
	return nil
}

var lineNumber = regexp.MustCompile(`line (\d+)`)

// lineOf is where the YAML is wrong. The rest of such an error may quote a secret.
func (p part) lineOf(err error) string {
	m := lineNumber.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	n, _ := strconv.Atoi(m[1])
	return fmt.Sprintf(" (line %d)", p.before+n)
}

var keyThere = regexp.MustCompile(`key "([A-Za-z0-9_./-]{1,60})" already set in map`)

func repeatedKey(err error) string {
	m := keyThere.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	return ": the key " + m[1] + " is there twice"
}

// value is a value of a file: what JSON has, or a text of cloud.conf.
type value struct{ any }

// empty is a value that says nothing: null, "", {} or [].
func (v value) empty() bool {
	switch x := v.any.(type) {
	case nil:
		return true
	case string:
		return x == ""
	case map[string]any:
		return len(x) == 0
	case []any:
		return len(x) == 0
	}
	return false
}

var errType = errors.New("the value has another type than files of this kind have")

// into decodes the value strictly into a field of the Distribution.
func (v value) into(field any) error {
	text, err := json.Marshal(v.any)
	if err != nil {
		return errType
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(field)
	wrong := (*json.UnmarshalTypeError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return typeError(wrong)
	}
	if unknown, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
		return &unknownField{unknown}
	}
	return errType
}

// loosely decodes the value into an object of Kubernetes, whose further keys another rule tells of.
func (v value) loosely(field any) error {
	text, err := json.Marshal(v.any)
	if err == nil {
		err = json.Unmarshal(text, field)
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return typeError(wrong)
	}
	if err != nil {
		return errType
	}
	return nil
}

// unknownField is a field that Kubernetes has and a Distribution has not, or a mistake.
type unknownField struct{ name string }

func (e *unknownField) Error() string { return "the Distribution has no field " + e.name }

// typeError says which type a value has. The value itself may be a secret.
func typeError(e *json.UnmarshalTypeError) error {
	is, _, _ := strings.Cut(e.Value, " ")
	field := ""
	if e.Field != "" {
		field = e.Field + " "
	}
	want := map[reflect.Kind]string{
		reflect.String: "text", reflect.Bool: "true or false", reflect.Int: "whole number", reflect.Int32: "whole number", reflect.Int64: "whole number",
		reflect.Slice: "list", reflect.Map: "mapping", reflect.Struct: "mapping",
	}[e.Type.Kind()]
	return fmt.Errorf("%w (%sis of type %s, and %s is wanted)", errType, field, is, cmp.Or(want, "another type"))
}

// not is an error that says which type the value has in place of the one that is wanted.
func (v value) not(wanted string) error {
	is := "text"
	switch v.any.(type) {
	case map[string]any:
		is = "mapping"
	case []any:
		is = "list"
	case bool:
		is = "true or false"
	case float64, int64:
		is = "number"
	}
	return fmt.Errorf("%w (it is of type %s, and %s is wanted)", errType, is, wanted)
}

// withTexts gives numbers and truth values below a mapping as texts, as Kubernetes reads quantities.
func (v value) withTexts() value {
	switch x := v.any.(type) {
	case map[string]any:
		all := map[string]any{}
		for key, below := range x {
			all[key] = value{below}.withTexts().any
		}
		return value{all}
	case float64:
		return value{strconv.FormatFloat(x, 'f', -1, 64)} // never 1e+08
	case int64:
		return value{fmt.Sprint(x)}
	}
	return v
}

// text is a scalar as text, as Helm puts it into a template.
func (v value) text() (string, error) {
	switch x := v.any.(type) {
	case string:
		return strings.TrimSpace(x), nil
	case bool, float64, int64:
		return fmt.Sprint(x), nil
	}
	return "", errType
}

// parsed reads a value, written as one or as a text: Terraform and --set-string of Helm do so.
func parsed[T any](v value, parse func(string) (T, error), wanted string) (T, error) {
	s, err := v.text()
	x, parseErr := parse(s)
	if err != nil || parseErr != nil {
		return x, v.not(wanted)
	}
	return x, nil
}

func (v value) yes() (bool, error) { return parsed(v, strconv.ParseBool, "true or false") }

func (v value) whole() (int, error) { return parsed(v, strconv.Atoi, "a whole number") }
