// Package migrate helps to replace another installation. Import reads its configuration and proposes a Distribution; Adopt lists the
// steps from a running driver to a bundle, and back.
//
// Import tells about every key that it meets: what it became, or why it was left out. A key of cloud.conf that nobody knows is an error. No note
// and no error holds a value of a file, because the files hold credentials.
package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// File is one file of the existing installation. A file of a directory may be anything: what Import cannot read there is left out, with a
// note. Import overwrites Content, which may hold secrets.
type File struct {
	Name      string
	Directory string // the argument that the file was found below; empty if the file itself is the argument
	Content   []byte
	live      []map[string]any // objects of a cluster, in place of Content
}

// source is the argument that gave the file.
func (f File) source() string {
	return cmp.Or(f.Directory, f.Name)
}

// Note says what became of one key.
type Note struct {
	File, Key string
	To        string // the key of the Distribution; empty if the key was left out
	Why       string // why it was left out, or what differs
}

// String is the note as one line.
func (n Note) String() string {
	line := fmt.Sprintf("%s: %s: ", n.File, n.Key)
	switch {
	case n.To == "":
		return line + "left out: " + n.Why
	case n.Why == "":
		return line + "is now " + n.To
	}
	return line + "is now " + n.To + ": " + n.Why
}

// ErrFile says that a file cannot be imported.
var ErrFile = errors.New("the file cannot be imported")

// Importer is what Import may know of the cloud, and what it keeps beside the Distribution.
type Importer struct {
	Zones      *Zones   // of the cloud; nil: not known
	CloudsYAML string   // the file that gets the credentials of the cloud.conf; empty: none
	Namespaces []string // of the installation; none: all that the documents of one owner have

	credentials []document // each cloud.conf
}

// Import proposes a Distribution for the files, and says key by key what became of them. Errors: ErrFile, ErrSeveral, ErrZones, and those of the sequence.
func (i *Importer) Import(files iter.Seq2[File, error]) (v1alpha1.Distribution, []Note, error) {
	in, err := readAll(files)
	if err == nil {
		err = in.choose(i.Namespaces)
	}
	if err != nil {
		return v1alpha1.Distribution{}, nil, err
	}
	known, err := in.survey()
	if err != nil {
		return v1alpha1.Distribution{}, nil, err
	}
	known.cloudsYAML = i.CloudsYAML
	all := &merged{first: map[string]string{}}
	all.into.APIVersion, all.into.Kind = v1alpha1.APIVersion, v1alpha1.KindDistribution
	notes := in.notes
	var problems []error
	for _, f := range formats() {
		for _, d := range in.documents {
			if !f.is(d) {
				continue
			}
			p := &proposal{file: d.label(), document: d, known: known}
			for _, n := range d.beside {
				p.note(n.Key, "", n.Why)
			}
			problems = append(problems, f.read(p, d))
			notes = append(notes, p.notes...)
			problems = append(problems, all.add(p.file, p.Distribution))
		}
	}
	if err := errors.Join(append(problems, known.onlyOthers(in.documents))...); err != nil {
		return v1alpha1.Distribution{}, nil, err
	}
	all.into.Spec.NodePools = known.nodePools.proposed()
	i.credentials = known.confs
	mapped, err := known.keepZones(&all.into.Spec.Topology, i.Zones)
	if err != nil {
		return v1alpha1.Distribution{}, nil, err
	}
	notes = append(notes, mapped...)
	notes = append(notes, known.tellOtherSecrets()...)
	notes = append(notes, known.volumes.tell(known.volumeFiles)...)
	if n := len(in.inline); n > 0 {
		notes = append(notes, Note{File: strings.Join(in.inlineOf, ", "), Key: fmt.Sprintf("workloads with inline volumes (%d): %s", n, someOf(in.inline)), Why: InlineAdvice})
	}
	if known.credentials { // once: every key of a credential would repeat it
		n := Note{File: "all files", Key: "credentials", Why: "import never prints them. Put them into driver-clouds.yaml and create the Secret: " + secretCommand("driver-clouds.yaml")}
		if i.CloudsYAML != "" {
			n.To, n.Why = i.CloudsYAML, "create the Secret: "+secretCommand(i.CloudsYAML)
		}
		notes = append(notes, n)
	}
	accepted, refused := known.accept(all.into)
	return accepted, append(notes, refused...), nil
}

// proposal is the Distribution that one document makes, and its notes.
type proposal struct {
	v1alpha1.Distribution
	file     string // as notes and errors name the document
	document document
	known    *survey
	to, why  string // where a rule put its value, and what differs, if its row does not say
	prefix   string // of the keys below, such as the name of a container
	notes    []Note
}

func (p *proposal) note(key, to, why string) {
	p.notes = append(p.notes, Note{File: p.file, Key: p.prefix + key, To: to, Why: why})
}

// format reads one kind of document.
type format struct {
	name string
	is   func(document) bool
	read func(*proposal, document) error
}

// formats are read in this order.
func formats() []format {
	all := []format{
		{"values of upstream's chart", isValues, (*proposal).readValues},
		{"cloud.conf", isCloudConf, (*proposal).readCloudConf},
	}
	for _, k := range objectKinds {
		all = append(all, k.format())
	}
	return all
}

func isRead(d document) bool {
	return slices.ContainsFunc(formats(), func(f format) bool { return f.is(d) })
}

// fileError is a problem that names its file. A rule for a map may find one below it, which says enough.
type fileError struct {
	file string
	err  error
}

func (e *fileError) Error() string { return fmt.Sprintf("%v: %s: %v", ErrFile, e.file, e.err) }

func (e *fileError) Unwrap() []error { return []error{ErrFile, e.err} }

func (p *proposal) problem(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if inner := (*fileError)(nil); errors.As(err, &inner) {
		return inner
	}
	return &fileError{p.file, err}
}

// leftOut is a reason, returned by a rule instead of a value.
type leftOut struct{ why string }

func (e *leftOut) Error() string { return e.why }

func leave(why string) error { return &leftOut{why} }

// rule says what becomes of one key.
type rule struct {
	key string
	to  string                       // the key of the Distribution; empty: the key is always left out
	why string                       // why it is left out, or what differs
	set func(*proposal, value) error // nil if the key is left out
	// credential: a person must put it into the Secret.
	credential bool
}

// apply does what a rule says and notes it. A *leftOut of the rule is a note too.
func (p *proposal) apply(r rule, key string, v value) error {
	p.known.credentials = p.known.credentials || r.credential
	if r.set == nil {
		if p.known.cloudsYAML != "" && strings.HasPrefix(r.why, partOfLogin) {
			r.why = strings.Replace(r.why, toWrite, p.known.cloudsYAML+" has it", 1)
		}
		if to, written := writtenToClouds[r.key]; written && p.known.cloudsYAML != "" {
			p.note(key, p.known.cloudsYAML+" ("+to+")", r.why)
			return nil
		}
		p.note(key, r.to, r.why)
		return nil
	}
	p.to, p.why = r.to, r.why
	err := r.set(p, v)
	var out *leftOut
	switch {
	case errors.As(err, &out):
		p.note(key, "", out.why)
	case err != nil:
		return p.problem("%s%s: %w", p.prefix, key, err)
	case p.to != "":
		p.note(key, p.to, p.why)
	}
	return nil
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// Rows lists what Import does with each key: for the documentation.
func Rows() []Note {
	var rows []Note
	add := func(file string, rules []rule) {
		for _, r := range rules {
			rows = append(rows, Note{File: file, Key: r.key, To: r.to, Why: r.why})
		}
	}
	add("chart", chartRules)
	add("cloud.conf", confRules)
	add("container", containerRules)
	for _, k := range objectKinds {
		add(k.kind, k.rules)
	}
	add("further DaemonSet", nodePoolRules)
	return rows
}
