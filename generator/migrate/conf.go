package migrate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
	"github.com/cinder-csi/cinder-csi/internal/pages"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// secretCommand creates the Secret with the credentials in the namespace and under the name that a vanilla bundle has by default. The
// README.md of the bundle has the exact command.
func secretCommand(file string) string {
	return "kubectl create secret generic cinder-csi-credentials --namespace cinder-csi --from-file=clouds.yaml=" + shell.Word(file)
}

const (
	partOfLogin    = "it is part of the credentials: "
	toWrite        = "write it into clouds.yaml"
	fileNotInPods  = "the pods of a bundle do not have this file; mount it with a Kustomize layer over the bundle. Name its path there in clouds.yaml (key %s)"
	secretInReadme = "the last line has the command for a Secret with clouds.yaml"
	ofInTree       = "only the provider that was a part of Kubernetes read it; give the text of the Secret that it names, if that has a cloud.conf"
	notOurs        = "it is for the cloud controller manager, which the bundle does not install"
)

// secretKey is a key of [Global] that becomes a key of clouds.yaml.
func secretKey(key, inClouds string) rule {
	return rule{key: config.Global + " " + key, why: partOfLogin + toWrite + " (key " + inClouds + ")", credential: true}
}

// confRules has a row for each key of cloud.conf, as SECTION KEY. "*" is every key of the section.
var confRules = []rule{
	secretKey("auth-url", "auth.auth_url"),
	secretKey("user-id", "auth.user_id"),
	secretKey("username", "auth.username"),
	secretKey("password", "auth.password"),
	secretKey("tenant-id", "auth.project_id"),
	secretKey("tenant-name", "auth.project_name"),
	secretKey("tenant-domain-id", "auth.project_domain_id"),
	secretKey("tenant-domain-name", "auth.project_domain_name"),
	secretKey("user-domain-id", "auth.user_domain_id"),
	secretKey("user-domain-name", "auth.user_domain_name"),
	secretKey("domain-id", "auth.user_domain_id and auth.project_domain_id"),
	secretKey("domain-name", "auth.user_domain_name and auth.project_domain_name"),
	secretKey("application-credential-id", "auth.application_credential_id"),
	secretKey("application-credential-name", "auth.application_credential_name"),
	secretKey("application-credential-secret", "auth.application_credential_secret"),
	secretKey("trust-id", "auth.trust_id"),
	secretKey("trustee-id", "auth.user_id"),
	secretKey("trustee-password", "auth.password"),
	{key: "Global token", why: "a token expires and cannot be renewed; create an application credential for the driver"},
	secretKey("region", "region_name"),
	secretKey("os-endpoint-type", "interface"),
	{key: "Global ca-file", why: "put the PEM of that file into spec.credentials.caBundle; it is not secret"},
	{key: "Global tls-insecure", why: "the opposite is verify in clouds.yaml; better put the PEM of the CA into spec.credentials.caBundle"},
	{key: "Global cert-file", why: strings.ReplaceAll(fileNotInPods, "%s", "cert"), credential: true},
	{key: "Global key-file", why: strings.ReplaceAll(fileNotInPods, "%s", "key"), credential: true},
	{key: "Global use-clouds", why: "a bundle always reads clouds.yaml"},
	{key: "Global clouds-file", why: "the bundle mounts its own; put that file into the Secret; " + secretInReadme, credential: true},
	{key: "Global cloud", to: "spec.credentials.cloud", set: func(p *proposal, v value) (err error) { p.Spec.Credentials.Cloud, err = v.text(); return err }},

	{key: "Global secret-name", why: ofInTree},
	{key: "Global secret-namespace", why: ofInTree},
	{key: "Global kubeconfig-path", why: ofInTree},

	{key: "BlockStorage node-volume-attach-limit", to: "spec.volumeAttachLimit", set: setAttachLimit},
	{key: "BlockStorage node-volume-attach-reserve", why: "the bundle leaves the reserve at 1; set spec.volumeAttachLimit to a number instead"},
	{key: "BlockStorage node-foreign-volumes", why: "no bundle sets it; set spec.volumeAttachLimit to a number instead"},
	{key: "BlockStorage rescan-on-resize", why: "the driver always reads the size of a disk again"},
	{key: "BlockStorage ignore-volume-az", to: "spec.topology.mode", why: zonesStay, set: setIgnoredZone},
	{key: "BlockStorage ignore-volume-microversion", why: "the driver uses the lowest microversion that works"},
	{key: "BlockStorage bs-version", why: "upstream ignores it too; there is only Cinder v3"},
	{key: "BlockStorage trust-device-path", why: "upstream ignores it too; the driver finds disks by serial number"},
	{key: "Metadata search-order", to: "spec.driver.metadata", set: setSearchOrder},
	{key: "Metadata request-timeout", why: "it has no effect in upstream's plugin either"},
	{key: "Zone volume-zone", to: "spec.topology.zoneMap"}, // set by readConfSection, which knows the compute zone
	{key: "Networking *", why: notOurs},
	{key: "LoadBalancer *", why: notOurs},
	{key: "LoadBalancerClass *", why: notOurs},
	{key: "Route *", why: notOurs},
	{key: "Router *", why: notOurs},
}

func setAttachLimit(p *proposal, v value) error {
	n, err := attachLimit(v)
	if err != nil {
		return err
	}
	p.Spec.VolumeAttachLimit = v1alpha1.IntOrAuto(strconv.Itoa(n))
	return nil
}

// attachLimit reads the limit as upstream does: 0 is none, and what is out of range is 256.
func attachLimit(v value) (int, error) {
	n, err := v.whole()
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, leave("0 is no limit; each node calculates its own (spec.volumeAttachLimit: auto)")
	case n < 0 || n > 256:
		return 256, nil
	}
	return n, nil
}

func setSearchOrder(p *proposal, v value) error {
	text, err := v.text()
	if err != nil {
		return err
	}
	var order []string
	for source := range strings.SplitSeq(text, ",") {
		source = strings.TrimSpace(source)
		if source != v1alpha1.ConfigDrive && source != v1alpha1.MetadataService {
			return leave("one of its sources is neither " + v1alpha1.ConfigDrive + " nor " + v1alpha1.MetadataService)
		}
		order = appendNew(order, source)
	}
	p.Spec.Driver.Metadata = order
	return nil
}

func isCloudConf(d document) bool { return d.conf != nil }

func (p *proposal) readCloudConf(d document) error {
	p.known.confs = append(p.known.confs, d)
	for _, s := range d.conf.Sections {
		if err := p.readConfSection(s); err != nil {
			return err
		}
	}
	return nil
}

// writtenToClouds are the keys that --clouds-yaml writes although a bundle is better without them.
var writtenToClouds = map[string]string{"Global token": "auth.token", "Global tls-insecure": "verify: false, if it is true"}

func (p *proposal) readConfSection(s *cloudconf.Section) error {
	for _, k := range s.Keys {
		r, known := confRule(s.Name, k.Name)
		name := "[" + s.Name + "] " + k.Name
		switch {
		case !known:
			return p.problem("line %d: there is no key %s in section [%s] of cloud.conf%s", k.Line, k.Name, s.Name, nearKey(s.Name, k.Name))
		case strings.EqualFold(s.Name, config.Zone):
			add(&p.Spec.Topology.ZoneMap, map[string]string{s.Subsection: k.Value})
			p.note(name, "spec.topology.zoneMap", "")
		case strings.EqualFold(s.Name, config.Global) && s.Subsection != "":
			p.note(name+" of one of several clouds", "", "a bundle serves one cloud; replace only the image of upstream's plugin ("+pages.ReplaceUpstream.String()+")")
		case strings.EqualFold(s.Name, config.Global) && k.Value == "" && !k.Bare:
			p.note(name, "", "it is empty")
		case r.set != nil && holdsTemplate(k.Value):
			p.note(name, "", isTemplate)
		default:
			if err := p.apply(r, name, value{k.Value}); err != nil {
				return err
			}
		}
	}
	return nil
}

func confRule(section, key string) (rule, bool) {
	i := slices.IndexFunc(confRules, func(r rule) bool {
		return strings.EqualFold(r.key, section+" "+key) || strings.EqualFold(r.key, section+" *")
	})
	if i < 0 {
		return rule{}, false
	}
	return confRules[i], true
}

func nearKey(section, key string) string {
	var keys []string
	for _, r := range confRules {
		if s, k, _ := strings.Cut(r.key, " "); strings.EqualFold(s, section) {
			keys = append(keys, k)
		}
	}
	if keys == nil {
		return plan.DidYouMean("["+section+"]", []string{"[Global]", "[BlockStorage]", "[Metadata]", "[LoadBalancer]", "[Networking]", "[Route]", "[Zone]"})
	}
	return plan.DidYouMean(key, keys)
}
