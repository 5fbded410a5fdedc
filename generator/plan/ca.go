package plan

import "strings"

// The ConfigMaps that a bundle brings along for certificates, and the keys that hold them. OpenShift's network operator fills the second.
const (
	ownCA, ownCAKey         = "cinder-csi-ca", "ca.pem"
	trustedCA, trustedCAKey = "cinder-csi-trusted-ca", "ca-bundle.crt"
)

// caSource is where the certificates come from. The driver trusts those of one file alone, so the three ways exclude each other.
func (d *decider) caSource(bundle Decision[string]) (Decision[CASource], Decision[bool]) {
	source := Decision[CASource]{Source: Default}
	trusted := configuredAs(d.spec.TrustedCA, d.spec.TrustedCA, "spec.trustedCA")
	configMap := d.spec.Credentials.CAConfigMap
	if d.spec.TrustedCA && !d.openShift() {
		d.problem("spec.trustedCA: nothing fills such a ConfigMap on vanilla; put the certificates into spec.credentials.caBundle, or name a ConfigMap of yours in spec.credentials.caConfigMap")
	}
	if configMap != "" && bundle.Value != "" {
		d.problem("spec.credentials.caConfigMap: caBundle is set too, and the driver trusts the certificates of one file; keep one")
	}
	if d.spec.TrustedCA && (configMap != "" || bundle.Value != "") {
		d.problem("spec.trustedCA: spec.credentials names certificates too, and the driver trusts those of one file; keep one")
	}
	switch {
	case d.spec.TrustedCA:
		source = Decision[CASource]{Value: CASource{trustedCA, trustedCAKey}, Source: FromConfig, Reason: "spec.trustedCA is set; OpenShift fills this ConfigMap with the certificates that it trusts, and keeps them current"}
	case configMap != "":
		name, key, hasKey := strings.Cut(configMap, "/")
		if !hasKey {
			key = ownCAKey
		}
		if !isSubdomain(name) || !secretKey.MatchString(key) || len(key) > 253 {
			d.problem("spec.credentials.caConfigMap: %q is neither a ConfigMap's name nor NAME/KEY", configMap)
		}
		source = Decision[CASource]{Value: CASource{name, key}, Source: FromConfig, Reason: "spec.credentials.caConfigMap is set"}
	case bundle.Value != "":
		source = Decision[CASource]{Value: CASource{ownCA, ownCAKey}, Source: FromConfig, Reason: "the bundle has the certificates of spec.credentials.caBundle"}
	}
	return source, trusted
}

// caKey is the key of the Secret with clouds.yaml that holds certificates. Without a configuration the pods mount the key cacert where the
// Secret has it, so that a Secret of OpenShift works as it is.
func (d *decider) caKey(source Decision[CASource]) Decision[string] {
	c := d.spec.Credentials
	if c.CAKey == "" {
		return Decision[string]{
			Source: Default,
			Reason: "the driver trusts the key cacert of the Secret, where it is there and no ConfigMap holds the CA; OpenShift and HyperShift fill that key",
		}
	}
	switch {
	case !secretKey.MatchString(c.CAKey) || len(c.CAKey) > 253 || c.CAKey == "." || strings.HasPrefix(c.CAKey, ".."):
		d.problem("spec.credentials.caKey: %q is not a key of a Secret: letters, digits, '-', '_' and '.'", c.CAKey)
	case c.CAKey == c.Key:
		d.problem("spec.credentials.caKey: the key %q holds clouds.yaml", c.CAKey)
	case source.Value.ConfigMap != "":
		d.problem("spec.credentials.caKey: ConfigMap %s holds certificates too, and the driver trusts those of one file; keep one", source.Value.ConfigMap)
	}
	return Decision[string]{Value: c.CAKey, Source: FromConfig, Reason: "spec.credentials.caKey is set; the pods wait until the Secret has this key"}
}
