package plan

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"regexp"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

// Where a bundle mounts what the controller reads. Directories, so that a changed Secret or ConfigMap reaches the running driver.
const (
	// CloudsDir has the Secret, its keys as clouds.yaml and cacert.
	CloudsDir = "/etc/cinder-csi/cloud"
	caDir     = "/etc/cinder-csi/ca" // the CA bundle as ca.pem
)

const defaultSecret = "cinder-csi-credentials"

var secretKey = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)

func (d *decider) credentials() (Decision[Credentials], Decision[string]) {
	c := d.spec.Credentials
	decision := Decision[Credentials]{Source: sourceOf(d.given.Credentials.SecretName != "")}
	owner := d.secretOwner()
	switch {
	case c.SecretName != "":
		decision.Reason = "spec.credentials.secretName is set"
	case owner == HyperShift:
		c.SecretName = d.identitySecret()
		decision.Reason = "HyperShift copies this Secret from the namespace of the HostedCluster, whose spec.platform.openstack.identityRef names it"
	default:
		c.SecretName = defaultSecret
		decision.Reason = "a person creates this Secret beside the controller; the generator never sees its content"
	}
	if !isSubdomain(c.SecretName) {
		d.problem("spec.credentials.secretName: %q is not a Secret's name", c.SecretName)
	}
	if !secretKey.MatchString(c.Key) || len(c.Key) > 253 || c.Key == "." || strings.HasPrefix(c.Key, "..") {
		d.problem("spec.credentials.key: %q is not a key of a Secret: letters, digits, '-', '_' and '.'", c.Key)
	}
	decision.Value = Credentials{SecretName: c.SecretName, Key: c.Key, Cloud: c.Cloud, Owner: owner}
	ca := Decision[string]{Value: d.certificates(c.CABundle), Source: Default, Reason: caBundle + " is not set: the driver trusts the certificates of its image"}
	if c.CABundle != "" {
		ca.Source, ca.Reason = FromConfig, caBundle+" is set; the certificates are public and embedded"
	}
	d.spec.Credentials.CABundle = ca.Value
	return decision, ca
}

// HyperShift is the owner of a Secret that the HyperShift operator writes.
const HyperShift = "HyperShift"

// secretOwner: on a hosted cluster of platform OpenStack, HyperShift copies the Secret of the HostedCluster beside the controller, and keeps
// it current. On other platforms it knows no credentials of OpenStack.
func (d *decider) secretOwner() string {
	if d.target != v1alpha1.HostedControlPlane {
		return ""
	}
	switch platform := d.spec.HyperShift.Platform; {
	case strings.EqualFold(platform, platformOpenStack):
		return HyperShift
	case platform == "" && d.given.Credentials.SecretName == "":
		d.warn("spec.hypershift.platform is not set: Secret %s is assumed, which HyperShift makes on the platform OpenStack. On another platform, set it and create the Secret", d.identitySecret())
		return HyperShift
	}
	return ""
}

const identitySuffix = "-cloud-credentials"

// identitySecret is the name that HyperShift's command line gives the Secret with the credentials of a hosted cluster.
func (d *decider) identitySecret() string {
	return d.hostedClusterName() + identitySuffix
}

const (
	caBundle         = "spec.credentials.caBundle"
	beginCertificate = "-----BEGIN CERTIFICATE-----"
)

// certificates decodes the certificates of a CA bundle and encodes them again, so that nothing else gets into the bundle. A private
// key must never get there, and pem.Decode skips any text before the first block that it can read. Messages never quote the input,
// because it may be a key.
func (d *decider) certificates(bundle string) string {
	var out bytes.Buffer
	for rest := bytes.TrimSpace([]byte(bundle)); len(rest) > 0; {
		block, after := pem.Decode(rest)
		given := rest[:len(rest)-len(after)]
		if block == nil || !bytes.HasPrefix(rest, []byte(beginCertificate)) || bytes.Count(given, []byte(beginCertificate)) > 1 || len(block.Headers) > 0 {
			d.problem(caBundle + ": want certificates in PEM and nothing else, no comments either")
			return ""
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			d.problem(caBundle + ": one of the certificates cannot be read")
			return ""
		}
		out.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
		rest = bytes.TrimSpace(after)
	}
	return out.String()
}

// cloudConf is the controller's cloud.conf but for the [Zone] sections. The region and the project are written down because every fact was read
// there. The driver refuses a login for another project.
func (d *decider) cloudConf(r Result) Decision[string] {
	var f cloudconf.File
	f.Set("Global", "", "use-clouds", "true")
	f.Set("Global", "", "clouds-file", CloudsDir+"/clouds.yaml")
	f.Set("Global", "", "cloud", r.Credentials.Value.Cloud)
	decision := Decision[string]{Source: Inferred, Reason: "credentials come from the mounted clouds.yaml"}
	if region := d.inv.Cloud.Region; region != "" {
		if problem := unwritable(region); problem != "" {
			d.problem("the cloud's region %q %s, which cannot be written into cloud.conf", region, problem)
		}
		f.Set("Global", "", "region", region)
		decision.Facts = append(decision.Facts, v1alpha1.NamedFact{Name: "cloud.region", Value: region})
		decision.Reason += "; the region is the one that was inspected"
	}
	if project := d.inv.Cloud.ProjectID; project != "" && unwritable(project) == "" { // with a Secret of another project every volume would seem to be gone
		f.Set("Global", "", "tenant-id", project)
	}
	switch {
	case r.CASource.Value.ConfigMap != "":
		f.Set("Global", "", "ca-file", caDir+"/ca.pem")
	case r.CAKey.Value != "": // without ca-file the driver looks for this file itself
		f.Set("Global", "", "ca-file", CloudsDir+"/cacert")
	}
	decision.Value = string(f.Bytes())
	return decision
}
