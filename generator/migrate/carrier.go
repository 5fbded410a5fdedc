package migrate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/documents"
)

// A carrier is an object or a file of another tool that holds values of upstream's chart: a HelmRelease, an Application, a HelmChart, a helmfile.
// All of them name the chart beside the values, so one walk knows them: it looks for the name, and takes what stands with it.

const upstreamChart = "openstack-cinder-csi"

var (
	chartKeyNames = []string{"chart", "chartName", "chartname", "chart_ref", "name", "releaseName"}
	// valuesKeys hold values, as a mapping, as a text, or as a list of both.
	valuesKeys = []string{"values", "valuesObject", "valuesContent", "valuesInline", "valuesTemplate", "valuesSources", "release_values"}
	// setKeys hold single values: a list of names and values, or a mapping of keys with dots.
	setKeys = []string{"set", "set_string", "parameters"}
	// elsewhereKeys name values that stand elsewhere.
	elsewhereKeys = []string{"valuesFrom", "valueFiles", "valuesFiles", "valuesFile", "additionalValuesFiles", "values_files"}
)

// carried gives the documents of a carrier. A text in it that cannot be read is an error that says what to give instead. An object without
// the name of the chart carries nothing.
func carried(d document) ([]document, error) {
	c := carrier{document: d}
	if isWorkload(d.kind()) { // a label may have the name of the chart
		return nil, nil
	}
	spec, _ := d.yaml["spec"].(map[string]any)
	switch {
	case d.kind() == "ConfigMap":
		c.manifests()
	case d.kind() == "HelmChartConfig" && spec["valuesContent"] != nil: // K3s and RKE2: it changes the values of the HelmChart of its name
		c.add(map[string]any{"valuesContent": spec["valuesContent"]}, true)
	default:
		content := maps.Clone(d.yaml)
		if d.kind() != "" { // anybody may annotate what he owns
			delete(content, "metadata")
			delete(content, "status")
		}
		if c.walk(content); c.found == nil {
			c.byKeys = true
			c.walk(content)
		}
	}
	if len(c.found) > 0 && d.kind() != "ConfigMap" && d.kind() != "HelmChartConfig" {
		c.beside("", d.yaml)
	}
	return c.found, c.err
}

type carrier struct {
	document document
	byKeys   bool // nothing names the chart, so its values are known by their keys
	found    []document
	replaced []Note // of the values that are read
	err      error
}

func (c *carrier) problem(format string, args ...any) {
	if c.err == nil {
		c.err = &fileError{c.document.label(), fmt.Errorf(format, args...)}
	}
}

// walk looks for mappings that name the chart. What stands below one belongs to it.
func (c *carrier) walk(at any) {
	switch v := at.(type) {
	case map[string]any:
		if c.names(v) {
			c.add(v, false)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			c.walk(v[key])
		}
	case []any:
		for _, item := range v {
			c.walk(item)
		}
	}
}

// beside finds the keys of the carrier that are no values, so that the first document tells of each.
func (c *carrier) beside(above string, at any) {
	switch v := at.(type) {
	case map[string]any:
		whole := c.names(v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			path, below := join(above, key), v[key]
			name, isText := below.(string)
			switch {
			case above == "" && slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, key):
			case whole && (isValuesKey(key) || isText && slices.Contains(chartKeyNames, key) && lastOf(name) == upstreamChart):
			case whole && key == "helm":
				helm, _ := below.(map[string]any)
				for _, inside := range slices.Sorted(maps.Keys(helm)) {
					if !isValuesKey(inside) {
						c.tell(join(path, inside), helm[inside])
					}
				}
			case whole || !c.carries(below):
				c.tell(path, below)
			default:
				c.beside(path, below)
			}
		}
	case []any:
		for i, item := range v {
			if path := fmt.Sprintf("%s[%d]", above, i); c.carries(item) {
				c.beside(path, item)
			} else {
				c.tell(path, item)
			}
		}
	}
}

const (
	ofInstaller = "it is for the tool that installs the chart, and the driver does not depend on it"
	ofRendered  = "it changes what the chart makes; give import the objects that come out of it, or --kubeconfig"
	otherConf   = "it has a cloud.conf; give import its text as a further file"
	otherValues = "it has values of its own, for another chart or for single clusters. If this cluster gets them, give them to import as a further file"
)

// tell has a line for a key of the carrier.
func (c *carrier) tell(path string, at any) {
	why := ofInstaller
	switch {
	case slices.ContainsFunc([]string{"patch", "postrender", "transformer"}, func(word string) bool { return strings.Contains(strings.ToLower(path), word) }):
		why = ofRendered
	case slices.ContainsFunc(namesIn(at), isConfText):
		why = otherConf
	case anyBelow(at, hasValues):
		why = otherValues
	}
	c.found[0].beside = append(c.found[0].beside, Note{Key: path, Why: why})
}

// carries reports whether a mapping that names the chart stands below.
func (c *carrier) carries(at any) bool {
	return anyBelow(at, func(v any) bool {
		m, is := v.(map[string]any)
		return is && c.names(m)
	})
}

func (c *carrier) names(m map[string]any) bool { return namesChart(m) || c.byKeys && hasOwnValues(m) }

// lastOf is the name of a chart without its repository.
func lastOf(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// namesChart reports whether a mapping names the chart by one of its own keys, or as a HelmRelease does: chart.spec.chart, or chart.name of Cluster API.
func namesChart(m map[string]any) bool {
	for _, key := range chartKeyNames {
		if name, is := m[key].(string); is && lastOf(name) == upstreamChart && (key != "name" && key != "releaseName" || hasValues(m)) {
			return true
		}
	}
	chart, _ := m["chart"].(map[string]any)
	spec, _ := chart["spec"].(map[string]any)
	return slices.ContainsFunc([]any{spec["chart"], chart["name"]}, func(name any) bool {
		text, _ := name.(string)
		return lastOf(text) == upstreamChart
	})
}

// hasOwnValues reports whether the values that stand in a mapping are those of this chart, by their keys. A HelmRelease may name the source of a
// chart, and an Application a directory of Git.
func hasOwnValues(m map[string]any) bool {
	helm, _ := m["helm"].(map[string]any)
	for _, key := range valuesKeys {
		for _, at := range []any{m[key], helm[key]} {
			values, _ := at.(map[string]any)
			if text, isText := at.(string); isText && inner(text, &values) != nil {
				continue
			}
			if areSurelyOwn(values) {
				return true
			}
		}
	}
	return false
}

// inner reads a YAML text inside of a document. Quotes may hide what it has from the check of the file.
func inner(text string, into any) error {
	if err := documents.Check([]byte(text)); err != nil {
		return err
	}
	return yaml.UnmarshalStrict([]byte(text), into)
}

// isValuesKey reports whether add reads a key.
func isValuesKey(key string) bool {
	return slices.Contains(valuesKeys, key) || slices.Contains(setKeys, key) || slices.Contains(elsewhereKeys, key)
}

func hasValues(v any) bool {
	m, _ := v.(map[string]any)
	return slices.ContainsFunc(slices.Concat(valuesKeys, setKeys, elsewhereKeys, []string{"helm"}), func(key string) bool { return m[key] != nil })
}

// add makes a document of the values that stand with the name of the chart. Later ones replace earlier ones, as Helm has it.
func (c *carrier) add(m map[string]any, only bool) {
	values := map[string]any{}
	var elsewhere []string
	helm, _ := m["helm"].(map[string]any)
	for _, from := range []map[string]any{m, helm} {
		for _, key := range valuesKeys {
			c.values(values, key, from[key], &elsewhere)
		}
		for _, key := range setKeys {
			c.set(values, key, from[key])
		}
		for _, key := range elsewhereKeys {
			if from[key] != nil {
				elsewhere = append(elsewhere, key+" "+strings.Join(namesIn(from[key]), " "))
			}
		}
	}
	d := document{file: c.document.label() + " values", source: c.document.source, yaml: values, carried: true, partly: only || len(elsewhere) > 0}
	if len(elsewhere) > 0 {
		d.elsewhere = "it names values that stand elsewhere (" + strings.Join(elsewhere, ", ") + "); give these files to import too, or the text of helm get values"
	}
	d.beside, c.replaced = c.replaced, nil
	c.found = append(c.found, d)
}

// namesIn are the texts below a value: names of files and objects.
func namesIn(at any) (all []string) {
	anyBelow(at, func(v any) bool {
		if text, is := v.(string); is {
			all = append(all, text)
		}
		return false
	})
	return all
}

// values reads a mapping, a text with one, or a list of these. A word in a list is the name of a file.
func (c *carrier) values(into map[string]any, key string, at any, elsewhere *[]string) {
	switch v := at.(type) {
	case map[string]any:
		switch text, isText := v["template"].(string); {
		case key == "valuesSources" && isText:
			c.values(into, key, text, elsewhere)
		case key == "valuesSources":
			*elsewhere = append(*elsewhere, key+" "+strings.Join(namesIn(v), " "))
		default:
			merge(into, v)
		}
	case string:
		var text map[string]any
		switch {
		case strings.Contains(v, "{{"), strings.Contains(v, "{%"):
			c.problem("%s is a template; give import what it renders", key)
		case inner(v, &text) != nil:
			c.problem("%s is no YAML mapping without repeated keys; give import the values as a file of their own", key)
		default:
			merge(into, text)
		}
	case []any:
		for _, item := range v {
			if name, is := item.(string); is && !strings.Contains(name, ":") {
				*elsewhere = append(*elsewhere, key+" "+name)
				continue
			}
			c.values(into, key, item, elsewhere)
		}
	}
}

// set reads single values, whose keys have dots.
func (c *carrier) set(into map[string]any, key string, at any) {
	one := func(name string, value any) {
		if strings.ContainsAny(name, "[\\") {
			c.problem("%s: import does not read the key %q; write it as YAML", key, name)
			return
		}
		parts := strings.Split(name, ".")
		if there := valueAt(into, parts...); there != nil && !reflect.DeepEqual(there, value) {
			c.replaced = append(c.replaced, Note{Key: name, Why: key + " has another value for it, which counts"})
		}
		for i := range slices.Backward(parts) {
			value = map[string]any{parts[i]: value}
		}
		merge(into, value.(map[string]any))
	}
	switch v := at.(type) {
	case map[string]any:
		if name, is := v["name"].(string); is {
			for _, other := range slices.Sorted(maps.Keys(v)) {
				if other != "name" && other != "value" {
					c.replaced = append(c.replaced, Note{Key: key + " " + name + " " + other, Why: ofInstaller})
				}
			}
			one(name, v["value"])
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			one(name, v[name])
		}
	case []any:
		for _, item := range v {
			c.set(into, key, item)
		}
	}
}

func merge(into, from map[string]any) {
	for key, value := range from {
		below, is := value.(map[string]any)
		there, both := into[key].(map[string]any)
		if is && both {
			merge(there, below)
			continue
		}
		into[key] = value
	}
}

// manifests are the objects that a ConfigMap holds as texts, as a ClusterResourceSet of Cluster API has them, or the values of a HelmRelease.
func (c *carrier) manifests() {
	data, _ := c.document.yaml["data"].(map[string]any)
	var confs []document
	var beside []Note
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[key].(string)
		all, err := open(File{Name: c.document.label() + " " + key, Content: []byte(text)})
		switch {
		case err == nil && slices.ContainsFunc(all, isCloudConf):
			confs = append(confs, all...)
		case err == nil && slices.ContainsFunc(all, document.ofDriver):
			c.found = append(c.found, all...)
		default:
			beside = append(beside, Note{Key: "beside it, " + key, Why: "it has neither objects nor values of the driver"})
		}
	}
	for i, d := range c.found {
		d.partly = d.partly || d.kind() == "" && !d.carried
		d.carried = d.carried || d.partly && areOwn(d.yaml)
		c.found[i] = d
	}
	if len(c.found) > 0 { // else the ConfigMap itself is read
		c.found[0].beside = append(c.found[0].beside, beside...)
		c.found = append(c.found, confs...)
	}
}

// installs reports whether a document in a text is a part of an installation. The objects of a cluster are no texts.
func (d document) installs() bool {
	return d.kind() == "" || isWorkload(d.kind()) || d.kind() == "Secret" || d.kind() == "ConfigMap" && d.hasConf() || d.group() == storageGroup || d.group() == snapshotGroup
}

// ofDriver reports whether a document in a text runs the driver, or has values or a class of it.
func (d document) ofDriver() bool {
	return d.carried || isWorkload(d.kind()) && runsDriver(d) || d.kind() == "" && areSurelyOwn(d.yaml) || d.kind() == "StorageClass" && isCinderClass(d)
}

// aboutDriver are words of which one stands in a document about the driver.
var aboutDriver = []string{"cinder-csi-plugin", upstreamChart, "cinder.csi.openstack.org", "cloud.conf"}

// isAboutDriver reports whether a document that nothing reads is about the driver all the same. Then it is not to be passed over.
func (d document) isAboutDriver() bool {
	text, err := yaml.Marshal(d.yaml)
	return err == nil && !slices.Contains(withoutSettings, d.kind()) && whyUnread[d.kind()] == "" && slices.ContainsFunc(aboutDriver, func(word string) bool { return strings.Contains(string(text), word) })
}

// whyUnread is what to give in place of an object that holds what import could read, or makes it.
var whyUnread = map[string]string{
	"ManagedResource":     "its content is in Secrets, which import does not read; give a kubeconfig of the cluster that has the driver",
	"SealedSecret":        "it holds a Secret; if that has a cloud.conf, give its text",
	"ExternalSecret":      "it makes a Secret; if that has a cloud.conf, give its text",
	"ClusterResourceSet":  "its manifests are in the ConfigMaps and Secrets that it names; give the ConfigMaps, or a kubeconfig of the workload cluster",
	"PodDisruptionBudget": stays, "PodMonitor": stays, "ServiceMonitor": stays, "PrometheusRule": stays, "NetworkPolicy": stays,
}

const stays = "it stays in the cluster after the swap and selects nothing then; delete it if it is that of the old driver. The bundle has its own"

// withoutSettings are kinds that an installation has and no setting is in.
var withoutSettings = []string{
	"Service", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "PriorityClass", "Event", "Lease",
	"PersistentVolumeClaim", "VolumeAttachment", "CSINode", "Node", "VolumeSnapshot", "VolumeSnapshotContent", "Secret", "HelmRepository", "Status",
}
