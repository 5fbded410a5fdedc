package contract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// Hints are the scheduler hints for a new volume (Block Storage API reference, "Create a volume", OS-SCH-HNT:scheduler_hints). They have an
// effect only if Cinder's scheduler has the filters for them.
type Hints struct {
	// SameHost are the volumes, by id or name, whose backend the new volume must share; DifferentHost those whose backend it must not.
	SameHost, DifferentHost []string
	// Query is a condition of the JSON filter, as JSON text.
	Query string
	// LocalToServer is the id of a server; the volume is created near its host.
	LocalToServer string
}

// Empty reports whether there are no hints.
func (h Hints) Empty() bool {
	return len(h.SameHost) == 0 && len(h.DifferentHost) == 0 && h.Query == "" && h.LocalToServer == ""
}

// Annotations of claims with hints, as with upstream's --pvc-annotations: names or ids of volumes, with commas or blanks between them.
const (
	AnnotationSameHost      = "cinder.csi.openstack.org/affinity"
	AnnotationDifferentHost = "cinder.csi.openstack.org/anti-affinity"
)

// HintsOfClaim reads the hints in the annotations of a claim. It fails if one of them names too many volumes.
func HintsOfClaim(annotations map[string]string) (Hints, error) {
	var h Hints
	for key, to := range map[string]*[]string{AnnotationSameHost: &h.SameHost, AnnotationDifferentHost: &h.DifferentHost} {
		list := strings.FieldsFunc(annotations[key], func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
		slices.Sort(list)
		if list = slices.Compact(list); len(list) > maxHinted {
			return Hints{}, fmt.Errorf("annotation %s names %d volumes, more than the %d allowed", key, len(list), maxHinted)
		}
		*to = list
	}
	return h, nil
}

// With returns the hints of both.
func (h Hints) With(more Hints) Hints {
	return Hints{
		SameHost: slices.Concat(h.SameHost, more.SameHost), DifferentHost: slices.Concat(h.DifferentHost, more.DifferentHost),
		Query: cmp.Or(h.Query, more.Query), LocalToServer: cmp.Or(h.LocalToServer, more.LocalToServer),
	}
}

// maxHinted is how many volumes one hint may name: each needs a request to the cloud.
const maxHinted = 32

// parseHints reads the JSON object of ParameterHints; its keys are Cinder's.
func parseHints(text string) (Hints, error) {
	var wire struct {
		SameHost      names           `json:"same_host"`
		DifferentHost names           `json:"different_host"`
		Query         json.RawMessage `json:"query"`
		LocalTo       string          `json:"local_to_instance"`
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wire); err != nil {
		return Hints{}, fmt.Errorf("want a JSON object with any of same_host, different_host, query, local_to_instance: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Hints{}, errors.New("text follows the JSON object")
	}
	if wire.LocalTo != "" && !IsUUID(wire.LocalTo) {
		return Hints{}, fmt.Errorf("local_to_instance: %.40q is not a server ID, which is a UUID", wire.LocalTo)
	}
	query, err := parseQuery(wire.Query)
	return Hints{SameHost: wire.SameHost, DifferentHost: wire.DifferentHost, Query: query, LocalToServer: wire.LocalTo}, err
}

// parseQuery reads a query: a JSON array, or a string with one.
func parseQuery(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	var condition []any
	if err := json.Unmarshal([]byte(text), &condition); err != nil || len(condition) == 0 {
		return "", errors.New(`query: want a condition such as ["=", "$backend_id", "a"]`)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return "", errors.New("query: it contains a control character")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return "", fmt.Errorf("query: %w", err)
	}
	return compact.String(), nil
}

// names is a name or a list of names, each once.
type names []string

// UnmarshalJSON also accepts a string, as Cinder does.
func (n *names) UnmarshalJSON(raw []byte) error {
	var list []string
	var one string
	if json.Unmarshal(raw, &one) == nil {
		if one != "" {
			list = []string{one}
		}
	} else if err := json.Unmarshal(raw, &list); err != nil {
		return errors.New("want the id or name of a volume, or a list of them")
	}
	list = slices.Clone(list)
	slices.Sort(list)
	list = slices.Compact(list)
	if slices.Contains(list, "") {
		return errors.New("the name of a volume is empty")
	}
	if len(list) > maxHinted {
		return fmt.Errorf("it names %d volumes; at most %d are allowed", len(list), maxHinted)
	}
	for _, name := range list {
		if err := CheckText("volume", name); err != nil {
			return err
		}
	}
	*n = list
	return nil
}
