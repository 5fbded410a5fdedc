package plan

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Setting is what was decided about one setting of the table v1alpha1.Settings, or about several whose values are one object.
type Setting struct {
	ID string
	// Value is an int, a bool, a string or a map[string]string; an object of them for several settings. It is nil where an older version of the
	// generator did not know the setting.
	Value any
}

func (s *Setting) label() *string { return &s.ID }

func (s Setting) plain() any { return s.Value }

// UnmarshalJSON gives the value the type that the table has for it.
func (s *Setting) UnmarshalJSON(text []byte) error {
	rows := rowsOf(s.ID)
	if _, field := rows[0].ID(); field == "" {
		value, err := restored(rows[0], text)
		s.Value = value
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	values := map[string]any{}
	for _, row := range rows {
		_, field := row.ID()
		if fields[field] == nil {
			continue
		}
		value, err := restored(row, fields[field])
		if err != nil {
			return err
		}
		values[field] = value
	}
	s.Value = values
	return nil
}

// restored is a value in the type that the configuration has for it.
func restored(row v1alpha1.Setting, text []byte) (any, error) {
	t := reflect.TypeFor[any]() // of auto, a truth value or a text is decided
	if _, auto := row.Bounds.(v1alpha1.AutoSwitch); !auto {
		configured, _ := row.Of(v1alpha1.Spec{})
		t = reflect.TypeOf(configured)
	}
	value := reflect.New(t)
	err := json.Unmarshal(text, value.Interface())
	return value.Elem().Interface(), err
}

// rowsOf are the rows of one decision.
func rowsOf(id string) []v1alpha1.Setting {
	var rows []v1alpha1.Setting
	for _, row := range v1alpha1.Settings {
		if of, _ := row.ID(); of == id {
			rows = append(rows, row)
		}
	}
	return rows
}

// noSettings are the decisions on all settings before anything is decided.
func noSettings() []Decision[Setting] {
	var all []Decision[Setting]
	for _, row := range v1alpha1.Settings {
		id, _ := row.ID()
		if !slices.ContainsFunc(all, func(d Decision[Setting]) bool { return d.ID == id }) {
			all = append(all, Decision[Setting]{ID: id, Value: Setting{ID: id}})
		}
	}
	return all
}

// settings decides on all of them: the value of the configuration, or the default.
func (d *decider) settings() []Decision[Setting] {
	all := noSettings()
	for i := range all {
		decision := &all[i]
		rows := rowsOf(decision.ID)
		decision.Source, decision.Reason = Default, rows[0].Reason+"; spec."+decision.ID+" is not set"
		fields := map[string]any{}
		for _, row := range rows {
			value, given := row.Of(d.spec)
			if _, stated := row.Of(d.given); stated {
				decision.Source, decision.Reason = FromConfig, "spec."+decision.ID+" is set"
				if row.IfSet != "" {
					decision.Reason += ", " + row.IfSet
				}
			}
			if auto, ok := row.Bounds.(v1alpha1.AutoSwitch); ok && given {
				value = d.automatic(decision, row, auto, value.(string))
			}
			_, field := row.ID()
			fields[field] = value
		}
		decision.Value.Value = fields
		if value, whole := fields[""]; whole {
			decision.Value.Value = value
		}
	}
	d.hostedServers(all)
	return all
}

// hostedTag is the key of the tag KEY=INFRAID that HyperShift gives every server of a hosted cluster, from release 4.19 on.
const hostedTag = "openshiftClusterID"

// ServerMetadataID is the id of the decision which servers get volumes.
const ServerMetadataID = "driver.serverMetadata"

// hostedServers: the administrator of a guest names servers in CSINodes that he writes. A strict driver serves those of the hosted cluster only.
func (d *decider) hostedServers(all []Decision[Setting]) {
	protection, servers := settingIn(all, "driver.protectOtherClusters"), settingIn(all, ServerMetadataID)
	if d.target != v1alpha1.HostedControlPlane || protection.Value.Value != v1alpha1.Strict || servers.Source == FromConfig {
		return
	}
	h := d.spec.HyperShift
	if h.InfraID == "" || !strings.EqualFold(h.Platform, platformOpenStack) {
		d.warn("spec.driver.serverMetadata is not set, and only with spec.hypershift.infraID and platform OpenStack is the tag known that HyperShift gives the servers. " +
			"The administrator of the guest can attach his volumes to any server of the project. Give its nodes metadata of their own, and name it in that key")
		return
	}
	pair := map[string]string{hostedTag: h.InfraID}
	for _, problem := range (v1alpha1.Pairs{}).Problems(pair) {
		d.problem("spec.hypershift.infraID: %s", problem)
	}
	servers.Value.Value = pair
	servers.Reason = "HyperShift gives each server of the hosted cluster this tag from release 4.19 on. The administrator of the guest could name any other server"
}

// automatic is what auto means for the target.
func (d *decider) automatic(decision *Decision[Setting], row v1alpha1.Setting, auto v1alpha1.AutoSwitch, set string) any {
	switch {
	case set == v1alpha1.Strict:
		return set
	case set != v1alpha1.Auto:
		return set == v1alpha1.Enabled
	}
	decision.Source, decision.Reason = Default, row.Reason
	if d.target != auto.StrictOn {
		return false
	}
	decision.Reason = auto.Because
	return v1alpha1.Strict
}

func (d *decider) checkSettings() {
	for _, row := range v1alpha1.Settings {
		value, _ := row.Of(d.spec)
		for _, problem := range row.Bounds.Problems(value) {
			d.problem("spec.%s: %s", row.Key, problem)
		}
	}
}

// Setting is the decision on a setting, by its id.
func (r Result) Setting(id string) Decision[Setting] { return *settingIn(r.Settings, id) }

// settingIn is the decision with an id, or an empty one.
func settingIn(all []Decision[Setting], id string) *Decision[Setting] {
	i := slices.IndexFunc(all, func(d Decision[Setting]) bool { return d.ID == id })
	if i < 0 {
		return &Decision[Setting]{ID: id}
	}
	return &all[i]
}

// Capacity is whether the quotas' capacity is published for the scheduler: more objects than the driver's depend on it.
func (r Result) Capacity() Decision[bool] { return typed[bool](r.Setting("driver.capacity")) }

// KubeletDir is the directory that the pods of the nodes mount.
func (r Result) KubeletDir() Decision[string] { return typed[string](r.Setting("driver.kubeletDir")) }

func typed[T any](d Decision[Setting]) Decision[T] {
	value, _ := d.Value.Value.(T)
	return Decision[T]{d.ID, value, d.Reason, d.Facts, d.Source}
}
