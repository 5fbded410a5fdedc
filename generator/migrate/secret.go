package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// withoutSecrets takes the values out of a Secret as soon as it is parsed. An annotation may hold a copy of the whole Secret.
func withoutSecrets(object map[string]any) {
	if object["kind"] != "Secret" {
		return
	}
	names := map[string]any{}
	for _, part := range []string{"data", "stringData"} {
		values, _ := object[part].(map[string]any)
		for key := range values {
			names[key] = nil
		}
	}
	d := document{yaml: object}
	metadata := map[string]any{"name": d.name(), "namespace": d.namespace()}
	apiVersion := object["apiVersion"]
	clear(object)
	object["apiVersion"], object["kind"], object["metadata"], object["data"] = apiVersion, "Secret", metadata, names
}

// secretRules are for the documentation; readSecret knows Secrets by name.
var secretRules = []rule{
	{key: "the Secret of identityRef", to: "spec.credentials.secretName", why: "if it has the key " + v1alpha1.DefaultCredentialsKey},
	{key: v1alpha1.DefaultKubeconfigSecret, to: "spec.hypershift.kubeconfigSecret", why: "if it has the key kubeconfig"},
	{key: "the Secret of upstream's plugin, of a cluster", why: liveSecret + "a message has the command"},
	{key: standaloneSecret, why: "the Cloud Credential Operator makes one for the bundle; of a hosted cluster the bundle has the Secret of identityRef"},
	{key: "any other", why: "the bundle does not need it. Import reads no value of a Secret: if it holds manifests or values, give their text"},
}

// confKey is the key of upstream's Secret.
const confKey = "cloud.conf"

// liveSecret is about the Secret of a running plugin.
const liveSecret = "import does not read the values of a Secret, and this one has settings too. Write them to a file, and give it to import beside the kubeconfig: "

// standaloneSecret is the one of OpenShift's built-in driver.
const standaloneSecret = "openstack-cloud-credentials"

// holdsConf is whether a Secret has a cloud.conf, for which a note prints a command. So it counts for an owner as a value does.
func (d document) holdsConf() bool {
	data, _ := d.yaml["data"].(map[string]any)
	_, has := data[confKey]
	return d.kind() == "Secret" && has && (d.live || d.name() != standaloneSecret)
}

// readSecret looks at the name of a Secret and at the names of its keys.
func (p *proposal) readSecret(d document) error {
	data, _ := d.yaml["data"].(map[string]any)
	keys := slices.Sorted(maps.Keys(data))
	shape := "the keys " + strings.Join(keys, ", ")
	if len(keys) == 0 {
		shape = "no keys"
	}
	switch name := d.name(); {
	case p.known.identity[name]:
		if !slices.Contains(keys, v1alpha1.DefaultCredentialsKey) {
			return p.problem("it lacks the key %s, from which the driver reads its credentials", v1alpha1.DefaultCredentialsKey)
		}
		p.Spec.Credentials.SecretName = name
		p.note(shape, secretRules[0].to, "HyperShift maintains it")
	case p.known.hosted && name == v1alpha1.DefaultKubeconfigSecret:
		if !slices.Contains(keys, "kubeconfig") {
			return p.problem("it lacks the key kubeconfig, with which the controller reaches the guest")
		}
		p.Spec.HyperShift.KubeconfigSecret = name
		p.note(shape, secretRules[1].to, "")
	case p.known.nodePools.mountedBy(d) != nil:
		p.note(shape, "", limitOfPool)
	case d.holdsConf():
		p.known.credentials = true
		p.note(shape, "", liveSecret+p.confCommand(name, "cloud.conf"))
	case name == standaloneSecret:
		p.note(shape, "", secretRules[3].why)
	default: // a cluster has hundreds; otherSecrets tells their number
		p.known.otherSecrets[d.source]++
	}
	return nil
}

// onlyOthers is an error if the documents are Secrets that readSecret does not know, such as one with manifests.
func (f *survey) onlyOthers(documents []document) error {
	others := 0
	for _, n := range f.otherSecrets {
		others += n
	}
	if others < len(documents) || others == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: it has only Secrets that the bundle does not need, and import reads no value of a Secret. If one holds manifests or values, give their text", ErrFile, documents[0].source)
}

func (f *survey) tellOtherSecrets() []Note {
	var notes []Note
	for _, source := range slices.Sorted(maps.Keys(f.otherSecrets)) {
		notes = append(notes, Note{File: source, Key: fmt.Sprintf("Secret (%d)", f.otherSecrets[source]), Why: secretRules[4].why})
	}
	return notes
}
