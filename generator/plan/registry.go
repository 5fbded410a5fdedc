package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The ids of decisions that there may be any number of begin so; the name of the object follows. The tags of Result say the same.
const (
	ClassID           = "storageClass."
	AttributesClassID = "attributesClass."
	SnapshotClassID   = "snapshotClasses."
)

// IDs is a result of which only the ids are set: IDs.Topology.ID is the public id of that decision.
var IDs = func() (r Result) {
	r.Settings = noSettings()
	r.identify()
	return r
}()

// entry is a decision of any type, as the registry sees it.
type entry interface {
	identify(id string)
	name() string // of its object, where there may be any number
	rename(name string)
	document() v1alpha1.Decision
	unsaid() bool // it changes nothing and nobody asked for it: a document leaves it out
	restore(v1alpha1.Decision) error
}

// named is the value of a decision about one of several objects. The name of that is no part of the document.
type named interface{ label() *string }

func (d *Decision[T]) identify(id string) { d.ID = id }

func (d *Decision[T]) name() string { return *any(&d.Value).(named).label() }

func (d *Decision[T]) rename(name string) {
	if n, ok := any(&d.Value).(named); ok {
		*n.label() = name
	}
}

func (d *Decision[T]) document() v1alpha1.Decision {
	value := any(d.Value)
	if w, ok := value.(interface{ plain() any }); ok {
		value = w.plain()
	}
	return v1alpha1.Decision{ID: d.ID, Value: value, Reason: d.Reason, Facts: d.Facts, Source: string(d.Source)}
}

func (d *Decision[T]) unsaid() bool {
	v := reflect.ValueOf(d.document().Value)
	empty := !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
	return empty && d.Reason == ""
}

func (d *Decision[T]) restore(doc v1alpha1.Decision) error {
	text, err := json.Marshal(doc.Value)
	if err != nil {
		return err
	}
	d.Reason, d.Facts, d.Source = doc.Reason, doc.Facts, Source(doc.Source)
	return json.Unmarshal(text, &d.Value)
}

// identify gives every decision its id.
func (r *Result) identify() {
	r.each(true, func(id string, e entry) { e.identify(id) })
}

// each calls visit with every decision and its id, in the order of a document. The fields of Result are the only list of decisions: a field
// without an id ends the program, as soon as it starts. If visit writes, a map gets its values back.
func (r *Result) each(writes bool, visit func(id string, e entry)) {
	eachOf(reflect.ValueOf(r).Elem(), "", writes, visit)
}

func eachOf(v reflect.Value, prefix string, writes bool, visit func(string, entry)) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		tag, tagged := field.Tag.Lookup("id")
		if tagged != decides(field.Type) {
			panic(fmt.Sprintf("plan: field %s: a decision, and nothing else, has an id", field.Name))
		}
		if tagged {
			eachIn(v.Field(i), prefix+tag, writes, visit)
		}
	}
}

// eachIn visits the decisions of one field.
func eachIn(v reflect.Value, id string, writes bool, visit func(string, entry)) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			d := v.Index(i).Addr().Interface().(entry)
			visit(id+d.name(), d)
		}
		return
	case reflect.Map:
		for _, name := range slices.Sorted(maps.Keys(v.Interface().(map[string]Decision[string]))) {
			key, d := reflect.ValueOf(name), reflect.New(v.Type().Elem())
			d.Elem().Set(v.MapIndex(key))
			visit(id+name, d.Interface().(entry))
			if writes {
				v.SetMapIndex(key, d.Elem())
			}
		}
		return
	}
	if d, one := v.Addr().Interface().(entry); one {
		visit(id, d)
		return
	}
	eachOf(v, id, writes, visit)
}

// decides is whether a type is a decision, or holds decisions.
func decides(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		return decides(t.Elem())
	}
	return t == reflect.TypeFor[Workload]() || reflect.PointerTo(t).Implements(reflect.TypeFor[entry]())
}

// prepare makes an empty decision for each id that begins as those of a list or a map of v.
func prepare(v reflect.Value, prefix string, ids []string) {
	for i := range v.NumField() {
		field, tag := v.Field(i), v.Type().Field(i).Tag.Get("id")
		if tag == "" { // no decision, or settings, which the table lists
			continue
		}
		switch field.Kind() {
		case reflect.Struct:
			if field.Type() == reflect.TypeFor[Workload]() {
				prepare(field, prefix+tag, ids)
			}
			continue
		case reflect.Map:
			field.Set(reflect.MakeMap(field.Type()))
		}
		for _, id := range ids {
			name, found := strings.CutPrefix(id, prefix+tag)
			if !found {
				continue
			}
			d := reflect.New(field.Type().Elem())
			d.Interface().(entry).rename(name)
			if field.Kind() == reflect.Map {
				field.SetMapIndex(reflect.ValueOf(name), d.Elem())
			} else {
				field.Set(reflect.Append(field, d.Elem()))
			}
		}
	}
}
