package migrate

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// TLS versions by their names in OpenShift's API.
const (
	tls12 = "VersionTLS12"
	tls13 = "VersionTLS13"
)

var apiServerRules = []rule{
	{key: "spec.tlsSecurityProfile", to: "spec.monitoring.tls", why: "for the metrics; cipher suites that Go has and holds secure", set: setTLSProfile},
}

// setTLSProfile follows the API of OpenShift's APIServer, where the profile without a type is Intermediate. Prometheus alone reads the
// metrics, and has TLS 1.2, so that nothing needs an older version.
func setTLSProfile(p *proposal, v value) error {
	if p.known.hosted {
		return leave("the metrics of a hosted control plane have no TLS of their own")
	}
	var profile struct {
		Type   string `json:"type"`
		Custom *struct {
			Ciphers       []string `json:"ciphers"`
			MinTLSVersion string   `json:"minTLSVersion"`
		} `json:"custom"`
	}
	if err := v.loosely(&profile); err != nil {
		return err
	}
	switch profile.Type {
	case "", "Intermediate":
		return leave("Intermediate is the default of the bundle too")
	case "Old":
		return leave("Prometheus has TLS 1.2, so that the metrics need no older version; the bundle keeps Intermediate")
	case "Modern":
		p.Spec.Monitoring.TLS.MinVersion = tls13
		return nil
	case "Custom":
		if profile.Custom == nil {
			return fmt.Errorf("type Custom needs custom")
		}
		return p.setCustomTLS(profile.Custom.MinTLSVersion, profile.Custom.Ciphers)
	}
	return fmt.Errorf("the type is none of Old, Intermediate, Modern, Custom")
}

func (p *proposal) setCustomTLS(version string, ciphers []string) error {
	switch version {
	case tls12, tls13:
		p.Spec.Monitoring.TLS.MinVersion = version
	case "VersionTLS10", "VersionTLS11", "":
		p.note("spec.tlsSecurityProfile.custom.minTLSVersion", "", "the metrics need no version before TLS 1.2")
	default:
		return fmt.Errorf("custom.minTLSVersion is none of VersionTLS10 to VersionTLS13")
	}
	for i, name := range ciphers {
		suite := goCipherSuite(name)
		if suite == "" {
			p.note(fmt.Sprintf("spec.tlsSecurityProfile.custom.ciphers[%d]", i), "", "Go does not have this cipher suite, or not as a secure one")
			continue
		}
		p.Spec.Monitoring.TLS.CipherSuites = appendNew(p.Spec.Monitoring.TLS.CipherSuites, suite)
	}
	return nil
}

// goCipherSuite is Go's name of a secure cipher suite that OpenShift names as OpenSSL does; empty if there is none.
// ECDHE-RSA-AES128-GCM-SHA256 is TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; those of TLS 1.3 have one name in both.
func goCipherSuite(name string) string {
	wanted := []string{name}
	if keyExchange, rest, found := strings.Cut(name, "-AES"); found && len(rest) > 3 {
		wanted = append(wanted, "TLS_"+keyExchange+"_WITH_AES_"+rest[:3]+"_"+rest[4:])
	}
	if keyExchange, found := strings.CutSuffix(name, "-CHACHA20-POLY1305"); found {
		wanted = append(wanted, "TLS_"+keyExchange+"_WITH_CHACHA20_POLY1305_SHA256")
	}
	for i := range wanted {
		wanted[i] = strings.ReplaceAll(wanted[i], "-", "_")
	}
	for _, suite := range tls.CipherSuites() {
		if slices.Contains(wanted, suite.Name) {
			return suite.Name
		}
	}
	return ""
}
