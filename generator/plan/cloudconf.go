package plan

import (
	"crypto/x509"
	"encoding/pem"
	"maps"
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
	if strings.ContainsAny(c.Key, "/\x00") || c.Key == "." || c.Key == ".." {
		d.problem("spec.credentials.key: %q is not a key of a Secret", c.Key)
	}
	d.checkCA(c.CABundle)
	decision.Value = Credentials{SecretName: c.SecretName, Key: c.Key, Cloud: c.Cloud, CABundle: c.CABundle}
	return decision
}

// checkCA makes sure that what is embedded is certificates and nothing else: a private key must never reach a bundle.
func (d *decider) checkCA(bundle string) {
	rest := []byte(strings.TrimSpace(bundle))
	for len(rest) > 0 {
		block, after := pem.Decode(rest)
		switch {
		case block == nil:
			d.problem("spec.credentials.caBundle: want certificates in PEM and nothing else")
			return
		case block.Type != "CERTIFICATE":
			d.problem("spec.credentials.caBundle: holds a %s; only certificates are public, and only they belong here", block.Type)
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			d.problem("spec.credentials.caBundle: a certificate cannot be read: %v", err)
			return
		}
		rest = after
	}
}

// cloudConf is the controller's cloud.conf. The region is written down because every fact was read there.
func (d *decider) cloudConf(r Result) Decision[string] {
	var f cloudconf.File
	f.Set("Global", "", "use-clouds", "true")
	f.Set("Global", "", "clouds-file", CloudsDir+"/clouds.yaml")
	f.Set("Global", "", "cloud", r.Credentials.Value.Cloud)
	decision := Decision[string]{Source: Inferred, Reason: "credentials come from the mounted clouds.yaml"}
	if region := d.inv.Cloud.Region; region != "" {
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
