package release

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/tools/image"
)

// home is the address of the repository, or a name that is no address. None is built in, because a stranger may own it one day.
func (r *release) home() string { return cmp.Or(r.Home, "urn:cinder-csi") }

// page explains the build type and the builder; SLSA asks for addresses that a reader can open.
func (r *release) page() string {
	if r.Home == "" {
		return r.home() + ":RELEASE.md"
	}
	return r.Home + "/blob/" + r.Version + "/RELEASE.md"
}

// statement is an in-toto Statement v1 (in-toto attestation framework) with SLSA Provenance v1 (slsa.dev/provenance/v1).
type statement struct {
	Type          string     `json:"_type"`
	Subject       []artefact `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

// artefact is a ResourceDescriptor of in-toto: a file or an input with its digest.
type artefact struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type predicate struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string            `json:"buildType"`
	ExternalParameters   map[string]string `json:"externalParameters"`
	InternalParameters   map[string]string `json:"internalParameters"`
	ResolvedDependencies []artefact        `json:"resolvedDependencies"`
}

type runDetails struct {
	Builder builder `json:"builder"`
}

type builder struct {
	ID string `json:"id"`
}

// writeProvenance writes which files came from which commit, Go and Debian packages. It has no times and no name of a machine, because
// two builds of a commit must be equal.
func (r *release) writeProvenance(context.Context) error {
	subjects, err := digests(r.dir)
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(r.statement(subjects), "", "  ")
	if err != nil {
		return err
	}
	return r.write("provenance.intoto.json", append(content, '\n'), 0o644)
}

func (r *release) statement(subjects []digest) statement {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, d := range subjects {
		s.Subject = append(s.Subject, artefact{Name: d.name, Digest: map[string]string{"sha256": d.sha256}})
	}
	s.Predicate.RunDetails.Builder.ID = cmp.Or(r.Builder, r.page()+"#unsigned-local-build")
	from := "pkg:golang/" + project + "@" + r.Version
	if r.Home != "" {
		from = "git+" + r.Home
	}
	s.Predicate.BuildDefinition = buildDefinition{
		BuildType:          r.page() + "#build-type",
		ExternalParameters: map[string]string{"version": r.Version, "source": from},
		InternalParameters: map[string]string{
			"SOURCE_DATE_EPOCH": strconv.FormatInt(r.time.Unix(), 10),
		},
		ResolvedDependencies: slices.Concat([]artefact{
			{URI: from, Digest: map[string]string{"gitCommit": r.commit}},
			{Name: "Go", URI: "pkg:golang/toolchain@" + strings.TrimPrefix(r.goVersion, "go")},
		}, debianArtefacts(r.debian)),
	}
	if r.Builder == "" {
		s.Predicate.BuildDefinition.InternalParameters["signature"] = "none: this statement is not signed, so it proves nothing about who made the files"
	}
	return s
}

func debianArtefacts(packages []image.Package) []artefact {
	var all []artefact
	for _, p := range packages {
		all = append(all, artefact{Name: p.Name, URI: debianURL(p), Digest: map[string]string{"sha256": p.SHA256}})
	}
	slices.SortFunc(all, func(a, b artefact) int { return strings.Compare(a.URI, b.URI) })
	return all
}
