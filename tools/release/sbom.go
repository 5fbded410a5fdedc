package release

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/cinder-csi/cinder-csi/tools/image"
)

// describePrograms writes an SBOM for each program from the modules that the Go linker recorded in it.
func (r *release) describePrograms(context.Context) error {
	all, err := programs(".")
	if err != nil {
		return err
	}
	for _, p := range all {
		content, err := os.ReadFile(r.path(p.file()))
		if err != nil {
			return err
		}
		info, err := buildinfo.Read(bytes.NewReader(content))
		if err != nil {
			return fmt.Errorf("read the modules of %s: %w", p.file(), err)
		}
		r.goVersion = info.GoVersion
		for _, module := range info.Deps {
			r.modules[module.Path] = module.Version
		}
		b := newBOM(p.name+"-"+p.String(), r.Version, hexOf(content), r.time)
		b.addProgram(b.root(p.name, r.Version, "pkg:golang/"+project+"@"+r.Version+"#cmd/"+p.name, "APPLICATION"), info, r.licences)
		if err := r.writeBOM(b); err != nil {
			return err
		}
	}
	return nil
}

// describeImage writes the SBOM of an image of one architecture: its Debian packages, the program, and the modules of the program.
func (r *release) describeImage(p program, img image.Image) error {
	imageDigest, err := img.Digest(r.time)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(r.path(p.file()))
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return err
	}
	b := newBOM(p.name+"-image-"+p.String(), r.Version, strings.TrimPrefix(imageDigest, "sha256:"), r.time)
	root := b.root(p.name+" image", r.Version, "pkg:oci/"+p.name+"@"+url.QueryEscape(imageDigest)+"?arch="+p.arch, "CONTAINER")
	for _, debian := range img.Packages {
		found := b.add("deb", debian.Name, debian.Version, debianURL(debian), noAssertion)
		found.PackageChecksums = sha256Of(debian.SHA256)
		b.relate(root, common.TypeRelationshipContains, found)
	}
	inside := b.add("program", p.name, r.Version, "pkg:golang/"+project+"@"+r.Version+"#cmd/"+p.name, "Apache-2.0")
	inside.PackageChecksums = sha256Of(hexOf(content))
	b.relate(root, common.TypeRelationshipContains, inside)
	b.addProgram(inside, info, r.licences)
	return r.writeBOM(b)
}

func (r *release) writeBOM(b *bom) error {
	var w bytes.Buffer
	if err := spdxjson.Write(&b.Document, &w, spdxjson.Indent("  ")); err != nil {
		return err
	}
	return r.write("sbom/"+b.DocumentName+".spdx.json", w.Bytes(), 0o644)
}

const noAssertion = "NOASSERTION" // SPDX 2.3, 7.13: the author states nothing

// bom is an SPDX 2.3 document about one subject.
type bom struct {
	spdx.Document
	subject string // its SHA-256
}

// newBOM makes an empty document. The namespace must be unique for each content (SPDX 2.3, 6.5), so it has the digest of the subject.
func newBOM(name, version, subject string, at time.Time) *bom {
	return &bom{subject: subject, Document: spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: "urn:cinder-csi:spdx/" + version + "/" + name + "-" + subject,
		CreationInfo: &spdx.CreationInfo{
			Created:  at.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "cinder-csi-release-" + version}},
		},
	}}
}

// root adds the package that the document describes.
func (b *bom) root(name, version, purl, purpose string) *spdx.Package {
	p := b.add("subject", name, version, purl, "Apache-2.0")
	p.PrimaryPackagePurpose, p.PackageChecksums = purpose, sha256Of(b.subject)
	b.Relationships = append(b.Relationships, &spdx.Relationship{
		RefA:         common.MakeDocElementID("", "DOCUMENT"),
		Relationship: common.TypeRelationshipDescribe, RefB: common.MakeDocElementID("", string(p.PackageSPDXIdentifier)),
	})
	return p
}

// notID are the characters that an SPDX identifier must not have.
var notID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// add adds a package with its URL in the package URL format. The number keeps identifiers apart whose names differ in other characters.
func (b *bom) add(kind, name, version, purl, licence string) *spdx.Package {
	p := &spdx.Package{
		PackageName: name, PackageVersion: version, PackageDownloadLocation: noAssertion,
		PackageSPDXIdentifier:   common.ElementID(fmt.Sprintf("%s-%d-%s", kind, len(b.Packages), notID.ReplaceAllString(name, "-"))),
		PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: licence, PackageCopyrightText: noAssertion,
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: purl,
		}},
	}
	b.Packages = append(b.Packages, p)
	return p
}

func (b *bom) relate(from *spdx.Package, relationship string, to *spdx.Package) {
	b.Relationships = append(b.Relationships, &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(from.PackageSPDXIdentifier)), Relationship: relationship,
		RefB: common.MakeDocElementID("", string(to.PackageSPDXIdentifier)),
	})
}

// addProgram adds the Go standard library and the modules of a program.
func (b *bom) addProgram(program *spdx.Package, info *debug.BuildInfo, licences map[string]string) {
	version := strings.TrimPrefix(info.GoVersion, "go")
	b.relate(program, common.TypeRelationshipDependsOn, b.add("go", "stdlib", version, "pkg:golang/stdlib@"+version, "BSD-3-Clause"))
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		licence := licences[module.Path]
		if licence == "" {
			licence = noAssertion
		}
		b.relate(program, common.TypeRelationshipDependsOn, b.add("go", module.Path, module.Version, "pkg:golang/"+module.Path+"@"+module.Version, licence))
	}
}

// debianURL is the package URL of a Debian package.
func debianURL(p image.Package) string {
	return "pkg:deb/debian/" + p.Name + "@" + url.QueryEscape(p.Version) + "?arch=" + p.Architecture
}

func sha256Of(hex string) []common.Checksum {
	return []common.Checksum{{Algorithm: common.SHA256, Value: hex}}
}
