package cloudparity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
)

// Answer is what a cloud sent for one request.
type Answer struct {
	Request Request
	Status  int
	Header  http.Header
	Raw     []byte
	Body    any // decoded JSON; nil without a body
}

// At walks the body by keys of objects and indexes of lists. It returns nil if a part of the path does not exist.
func (a Answer) At(path ...any) any {
	at := a.Body
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := at.(map[string]any)
			at = object[step]
		case int:
			list, _ := at.([]any)
			if step >= len(list) {
				return nil
			}
			at = list[step]
		}
	}
	return at
}

// Text is At for a string; empty if there is none.
func (a Answer) Text(path ...any) string {
	text, _ := a.At(path...).(string)
	return text
}

// List is At for a list.
func (a Answer) List(path ...any) []any {
	list, _ := a.At(path...).([]any)
	return list
}

// String is for messages of failed tests.
func (a Answer) String() string {
	body := string(a.Raw)
	if len(body) > 600 {
		body = body[:600] + "…"
	}
	return fmt.Sprintf("%s %s as %s answered %d %s", a.Request.Call.Method, a.Request.Call.Path, a.Request.As, a.Status, body)
}

// want fails the test unless the answer has one of these statuses.
func (a Answer) want(t *testing.T, statuses ...int) Answer {
	t.Helper()
	if !slices.Contains(statuses, a.Status) {
		t.Fatalf("%s; want %v", a, statuses)
	}
	return a
}

// Recording is an answer without the parts that differ from run to run.
type Recording struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    any               `json:"body,omitempty"`
}

// recordedHeaders are the headers that OpenStack defines. The others come from the web server in front of it.
var recordedHeaders = []string{
	"Content-Type", "Location", "OpenStack-API-Version", "Retry-After", "Vary", "WWW-Authenticate", "X-Compute-Request-Id",
	"X-OpenStack-Nova-API-Version", "X-OpenStack-Request-Id", "X-Subject-Token",
}

// typedKeys are keys whose strings depend on the installation of the cloud, not on its API. A recording has only their type.
var typedKeys = []string{
	"audit_ids", "cluster_name", "container", "description", "fail_reason", "event_id", "host", "host_name", "hostname", "hostId", "key_name", "os-vol-host-attr:host",
	"OS-EXT-SRV-ATTR:host", "OS-EXT-SRV-ATTR:hypervisor_hostname", "OS-EXT-SRV-ATTR:instance_name", "OS-EXT-SRV-ATTR:reservation_id", "updated",
}

// literalNumbers are keys whose numbers a case sets. Other numbers are quotas, usage and progress.
var literalNumbers = []string{"code", "size"}

// replacements replace values that differ from run to run by their kind. Their order matters: a request ID contains a UUID.
var replacements = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`req-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<request>"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uuid>"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "<id>"},
	{regexp.MustCompile(`\b[0-9a-f]{56}\b`), "<host id>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`), "<time .000000Z>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}`), "<time .000000>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "<time Z>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`), "<time>"},
	{regexp.MustCompile(`parity-[0-9a-f]{8}-[0-9]+`), "<name>"},
	{regexp.MustCompile(`maximum is \d+\.\d+`), "maximum is <microversion>"}, // the version documents have it
	{regexp.MustCompile(`\b\d+G\b`), "<number>G"},
	{regexp.MustCompile(`/dev/vd[a-z]+\b`), "/dev/vd<letter>"},
	{regexp.MustCompile(`\b(lab|sim)([-:])`), "<bed>$2"},
}

// record removes everything from an answer that differs from run to run or from cloud to cloud.
func (b *Bed) record(a Answer) Recording {
	r := Recording{Status: a.Status, Headers: map[string]string{}}
	for _, name := range recordedHeaders {
		values := slices.Clone(a.Header.Values(name))
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		value := b.anonymous(strings.Join(values, ", "))
		if name == "X-Subject-Token" {
			value = "<token>"
		}
		r.Headers[name] = value
	}
	if a.Body != nil {
		r.Body = b.shape("", a.Body)
	}
	return r
}

// anonymous replaces addresses of this cloud, IDs, times, and names that the suite made.
func (b *Bed) anonymous(s string) string {
	for _, root := range b.roots {
		s = strings.ReplaceAll(s, root.url, root.name)
	}
	for _, r := range replacements {
		s = r.pattern.ReplaceAllString(s, r.with)
	}
	return s
}

// shape is the normal form of one JSON value: the elements of a list are a set, in a fixed order.
func (b *Bed) shape(key string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(value))
		for k, v := range value {
			object[b.anonymous(k)] = b.shape(k, v)
		}
		return object
	case []any:
		return b.set(key, value)
	case string:
		if slices.Contains(typedKeys, key) {
			return "<string>"
		}
		if key == "message" { // messages of Keystone also have its schema and the body of the request, with passwords
			value, _, _ = strings.Cut(value, "\n")
		}
		return b.anonymous(value)
	case json.Number:
		if slices.Contains(literalNumbers, key) {
			return value
		}
		return "<number>"
	default:
		return value
	}
}

// services are the catalog types that a recording has. The product does not use other services.
var services = []string{"block-storage", "compute", "identity", "volumev3"}

// set is a list without repetition and order, because the number of volumes in a cloud is not a property of its API.
func (b *Bed) set(key string, list []any) []any {
	shapes := map[string]any{}
	for _, element := range list {
		if service, _ := element.(map[string]any); key == "catalog" && !slices.Contains(services, service["type"].(string)) {
			continue
		}
		shape := b.shape(key, element)
		text, err := json.Marshal(shape)
		if err != nil {
			panic(err) // the value comes from JSON, so this cannot happen
		}
		shapes[string(text)] = shape
	}
	texts := make([]string, 0, len(shapes))
	for text := range shapes {
		texts = append(texts, text)
	}
	sort.Strings(texts)
	set := make([]any, 0, len(texts))
	for _, text := range texts {
		set = append(set, shapes[text])
	}
	return set
}

// text is a recording in the form of its file.
func (r Recording) text() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
