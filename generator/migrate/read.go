package migrate

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// input is what was read of all files.
type input struct {
	documents []document
	objects   map[string][]document // the same, by identity
	notes     []Note
}

// readAll reads the files one after the other, and keeps only the documents that a format reads.
func readAll(files iter.Seq2[File, error]) (*input, error) {
	in := &input{objects: map[string][]document{}}
	unread := map[string]*otherKinds{}
	var sources []string
	var problems []error
	for f, err := range files {
		if err != nil {
			return nil, err
		}
		if sources = appendNew(sources, f.source()); unread[f.source()] == nil {
			unread[f.source()] = &otherKinds{count: map[string]int{}}
		}
		documents, err := open(f)
		clear(f.Content)
		switch {
		case err != nil && f.Directory == "":
			problems = append(problems, err)
			unread[f.source()].read = true // the error says enough
		case err != nil:
			in.notes = append(in.notes, Note{File: f.Name, Key: "the file", Why: strings.TrimPrefix(err.Error(), ErrFile.Error()+": "+f.Name+": ")})
		}
		in.keep(documents, unread[f.source()])
	}
	for _, source := range sources {
		problems = append(problems, in.tellUnread(source, unread[source]))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return in, nil
}

// otherKinds are the documents of one argument that no format reads.
type otherKinds struct {
	count map[string]int // by kind
	about []string       // those that are about the driver all the same
	read  bool           // another document of the argument is read
}

// keep sorts documents. An object that is there twice, as in a must-gather directory, is kept once.
func (in *input) keep(documents []document, other *otherKinds) {
	for _, d := range documents {
		if !isRead(d) {
			if d.isAboutDriver() {
				other.about = appendNew(other.about, d.label())
			} else {
				other.count[d.unreadKind()]++
			}
			continue
		}
		other.read = true
		if slices.ContainsFunc(in.objects[d.identity()], d.sameContent) {
			continue
		}
		in.documents = append(in.documents, d)
		in.objects[d.identity()] = append(in.objects[d.identity()], d)
	}
}

// identity tells objects from each other.
func (d document) identity() string { return d.kind() + " " + d.namespace() + "/" + d.name() }

func (d document) sameContent(other document) bool {
	return d.kind() != "" && reflect.DeepEqual(d.yaml, other.yaml)
}

// tellUnread names what no format reads. An argument without anything to read is a mistake.
func (in *input) tellUnread(source string, other *otherKinds) error {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(other.count)) {
		n := ""
		if other.count[kind] > 1 {
			n = fmt.Sprintf(" (%d)", other.count[kind])
		}
		kinds = append(kinds, kind+n)
		in.notes = append(in.notes, Note{File: source, Key: kind + n, Why: "it has no setting of the driver"})
	}
	for _, label := range other.about {
		in.notes = append(in.notes, Note{File: label, Key: "the document", Why: aboutTheDriver})
	}
	switch {
	case other.read:
		return nil
	case len(other.about) > 0:
		return fmt.Errorf("%w: %s: %s", ErrFile, strings.Join(other.about, ", "), aboutTheDriver)
	}
	found := "nothing"
	if len(kinds) > 0 {
		found = strings.Join(kinds, ", ")
	}
	return fmt.Errorf("%w: %s: it has %s, and no setting of a Cinder driver. Import reads cloud.conf, the values of the chart openstack-cinder-csi, "+
		"the workloads, classes, ConfigMaps and PersistentVolumes of an installation, and the configuration of OpenShift and HyperShift", ErrFile, source, found)
}

// aboutTheDriver is what to do with a document that import knows to be about the driver and does not read.
const aboutTheDriver = "import does not read this, and it is about the driver. Give what it renders or makes: the output of kustomize build or helm template, the text of helm get values, or --kubeconfig"
