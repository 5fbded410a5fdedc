package plan

import (
	"crypto/x509"
	"encoding/pem"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

// Where a bundle mounts what the controller reads. Directories, so that a changed Secret or ConfigMap reaches the running driver.
const (
	CloudsDir = "/etc/cinder-csi/cloud"  // the Secret, its key as clouds.yaml
	CADir     = "/etc/cinder-csi/ca"     // the CA bundle as ca.pem
	ConfigDir = "/etc/cinder-csi/config" // cloud.conf
)

const defaultSecret = "cinder-csi-credentials"

var secretKey = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)

func (d *decider) credentials() Decision[Credentials] {
	c := d.spec.Credentials
	decision := Decision[Credentials]{Source: sourceOf(d.given.Credentials.SecretName != "")}
	if c.SecretName == "" {
		c.SecretName = defaultSecret
		decision.Reason = "a person creates this Secret beside the controller; the generator never sees its content"
	} else {
		decision.Reason = "spec.credentials.secretName is set"
	}
	if !isSubdomain(c.SecretName) {
		d.problem("spec.credentials.secretName: %q is not a Secret's name", c.SecretName)
	}
	if !secretKey.MatchString(c.Key) || len(c.Key) > 253 || c.Key == "." || strings.HasPrefix(c.Key, "..") {
		d.problem("spec.credentials.key: %q is not a key of a Secret: letters, digits, '-', '_' and '.'", c.Key)
	}
	c.CABundle = d.certificates(c.CABundle)
	d.spec.Credentials.CABundle = c.CABundle
	decision.Value = Credentials{SecretName: c.SecretName, Key: c.Key, Cloud: c.Cloud, CABundle: c.CABundle}
	return decision
}

const (
	caBundle         = "spec.credentials.caBundle"
	beginCertificate = "-----BEGIN CERTIFICATE-----"
)

// certificates are those of a CA bundle, encoded anew, so that what is embedded is certificates and nothing else: a private key must
// never reach a bundle, and pem.Decode passes over whatever stands before the first block it can read. Messages never repeat what
// was found instead.
func (d *decider) certificates(bundle string) string {
	var out strings.Builder
	for rest := strings.TrimSpace(bundle); rest != ""; {
		block, after := pem.Decode([]byte(rest))
		given := rest[:len(rest)-len(after)]
		if block == nil || !strings.HasPrefix(rest, beginCertificate) || strings.Count(given, beginCertificate) > 1 || len(block.Headers) > 0 {
			d.problem(caBundle + ": want certificates in PEM and nothing else, no comments either")
			return ""
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			d.problem(caBundle + ": one of the certificates cannot be read")
			return ""
		}
		out.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
		rest = strings.TrimSpace(string(after))
	}
	return out.String()
}

// cloudConf is the controller's cloud.conf. The region is written down because every fact was read there.
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
		decision.Facts = append(decision.Facts, "cloud.region = "+region)
		decision.Reason += "; the region is the one that was inspected"
	}
	if r.Credentials.Value.CABundle != "" {
		f.Set("Global", "", "ca-file", CADir+"/ca.pem")
	}
	zoneMap := r.Topology.Value.ZoneMap
	for _, compute := range slices.Sorted(maps.Keys(zoneMap)) {
		f.Set(config.Zone, compute, config.VolumeZone, zoneMap[compute])
	}
	if len(zoneMap) > 0 {
		decision.Reason += "; the [Zone] sections are spec.topology.zoneMap"
	}
	decision.Value = string(f.Bytes())
	return decision
}
