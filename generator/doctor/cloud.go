package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/inspect"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// Want is what a bundle needs of a cloud.
type Want struct {
	CABundle   bool     // the configuration names a CA for the pods
	CAOwner    string   // what puts the CA of the cloud into the key cacert of the Secret, if it is private; empty: a person
	Secret     string   // the Secret with the credentials
	Zones      bool     // the driver reports and uses zones
	ZonesWhy   string   // the reason of that decision
	Snapshots  bool     // the bundle has the snapshotter
	Weaknesses []string // of the settings of the login: cloud.Settings.Weaknesses
}

type cloudCheck struct {
	Want
	report  *Report
	cloud   *cloud.Cloud
	traffic *Traffic
	inv     v1alpha1.Inventory
	roots   *x509.CertPool // nil: those of the system
	// withoutRules: the token that Keystone shows has no access rules.
	withoutRules bool
}

// CheckCloud adds the findings about a cloud that an inspection has just read. Traffic watches the connection.
func (r *Report) CheckCloud(ctx context.Context, c *cloud.Cloud, traffic *Traffic, inventory v1alpha1.Inventory, want Want) {
	check := &cloudCheck{Want: want, report: r, cloud: c, traffic: traffic, inv: inventory}
	check.run(ctx)
}

func (c *cloudCheck) run(ctx context.Context) {
	c.checkCredential(ctx)
	c.checkReading(ctx)
	c.checkEndpoints()
	c.checkMicroversions()
	c.checkZones()
	c.checkTypes()
	c.checkQuota()
	c.checkBackup()
	c.checkTransport() // last: it has seen every response
}

// services are those that the driver cannot work without.
var services = []string{"identity", "compute", "block-storage"}

func (c *cloudCheck) checkEndpoints() {
	found := c.inv.Services
	for _, name := range services {
		s := found.Value[name]
		if err := c.cloud.CheckPlace(name); err != nil && !s.Present {
			c.report.add("cloud.endpoints", Error, err.Error(),
				"the driver cannot work without it", "check the region (--os-region-name) and the interface in clouds.yaml; openstack catalog list shows what there is")
		}
	}
	if err := c.cloud.CheckPlace("block-storage", "compute"); errors.Is(err, cloud.ErrOtherCloud) {
		c.report.add("cloud.endpoints", Error, err.Error(), "the driver refuses this login", "correct the entry in clouds.yaml")
	}
	const why = "the driver could not reach the service either"
	const do = "check DNS, proxy and firewall, or choose another interface in clouds.yaml (public, internal)"
	all := true
	for _, name := range services {
		versions := c.inv.VersionsOf(name)
		all = all && found.Value[name].Present && versions.State == v1alpha1.Known
		switch versions.State {
		case v1alpha1.Failed:
			c.report.add("cloud.endpoints", Error, versions.Reason, why, do)
		case v1alpha1.Denied, v1alpha1.Unsupported:
			c.report.notChecked("the versions of "+name, versions.Reason, "ask the operator of the cloud for them")
		}
	}
	if all {
		c.report.ok("cloud.endpoints", "identity, compute and block-storage are in the catalog and answer")
	}
	for _, url := range c.cloud.Unencrypted() {
		c.report.add("cloud.endpoints", Warning, "the catalog has "+url+", which is not encrypted", "somebody on the network can read the token there",
			"choose an interface with https in clouds.yaml, or have the operator of the cloud change the catalog")
	}
}

// feature is what the driver can do from a microversion on. The numbers are those of the requests in driver/openstack.
type feature struct {
	service, from, without string
	severity               Severity
}

// Features are the microversions that the requests of the driver name, and what is missing without them.
var features = []feature{
	{"block-storage", "3.5", "the driver cannot say why Cinder failed to create a volume", Warning},
	{"block-storage", "3.27", "the driver cannot see attachments, which it needs to detach safely", Error},
	{"block-storage", "3.42", "volumes cannot grow while a pod uses them", Warning},
	{"block-storage", "3.43", "backups are not possible: the driver could not find them again", Warning},
	{"block-storage", "3.47", "a volume cannot be restored from a backup", Warning},
	{"block-storage", "3.51", "a backup goes to the default zone", Warning},
	{"block-storage", "3.60", "the driver lists all volumes each time instead of those that changed", Warning},
	{"block-storage", "3.66", "a snapshot of a volume in use needs force", Warning},
	{"compute", "2.20", "volumes cannot be attached or detached", Error},
	{"compute", "2.26", "the driver cannot read servers, so volumes cannot be detached safely", Error},
	{"compute", "2.60", "multiattach volumes cannot be attached", Warning},
}

// Microversions lists service and microversion of each feature, for the test that compares them with the driver.
func Microversions() map[string]bool {
	all := map[string]bool{}
	for _, f := range features {
		all[f.service+" "+f.from] = true
	}
	return all
}

func (c *cloudCheck) checkMicroversions() {
	missing, unknown := 0, false
	for _, f := range features {
		s := c.inv.Services.Value[f.service]
		if c.inv.VersionsOf(f.service).State != v1alpha1.Known {
			unknown = true // checkEndpoints says why
			continue
		}
		if !s.Present || inspect.AtLeast(s.MaxMicroversion, f.from) {
			continue
		}
		missing++
		have := cmp.Or(s.MaxMicroversion, "no microversion")
		c.report.add("cloud.microversions", f.severity, fmt.Sprintf("%s has %s and not %s", f.service, have, f.from), "without it "+f.without,
			"upgrade the service, or do without that feature")
	}
	if missing == 0 && !unknown {
		c.report.ok("cloud.microversions", "Cinder %s and Nova %s have every feature that the driver uses",
			c.inv.Services.Value["block-storage"].MaxMicroversion, c.inv.Services.Value["compute"].MaxMicroversion)
	}
}

func (c *cloudCheck) checkBackup() {
	backup := c.inv.Backup
	if !c.known("cloud.backup", "backups of the project", backup.State, backup.Reason) {
		return
	}
	switch service := backup.Value.Service; {
	case backup.Value.Made:
		c.report.ok("cloud.backup", "the project has a finished backup, so the cloud has the backup service")
	case service.State != v1alpha1.Known:
		c.report.notChecked("whether the cloud has the backup service", "Cinder lists its services to administrators only ("+service.Reason+")",
			"ask the operator of the cloud, or create a backup of a small volume, before you use a VolumeSnapshotClass with backups")
	case service.Value == "up":
		c.report.ok("cloud.backup", "the backup service runs")
	default:
		c.report.add("cloud.backup", Warning, "the backup service (cinder-backup) is "+service.Value, "snapshots work, but backups do not",
			"set spec.snapshots.backup to disabled, or have the operator of the cloud start the service")
	}
}

// list joins names for a sentence; of many it names the first.
func list(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
