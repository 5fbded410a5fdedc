// Package pages names the pages of the documentation in what the programs print. A program is installed without its repository, so no message
// names a path.
package pages

import "strings"

// Page is a page, or a section of one: its path below docs, its title and the heading of the section.
type Page string

// The pages that messages name. A test compares them with the files.
const (
	AccessRules          Page = "reference/access-rules.md|Access rules"
	AfterRestoreOfEtcd   Page = "how-to/recover-a-cluster.md|After the loss of a cluster or an old etcd|After a restore of etcd"
	AnotherClusterID     Page = "how-to/recover-a-cluster.md|After the loss of a cluster or an old etcd|With another cluster ID"
	BuildTheImage        Page = "how-to/build-the-image.md|Build the driver image and name it"
	CAChanged            Page = "how-to/rotate-credentials.md|Replace the credentials of the driver|The CA changed"
	CheckForDrift        Page = "how-to/check-for-drift.md|Check for drift"
	ClockIsWrong         Page = "how-to/troubleshoot.md|Troubleshoot a volume|A clock is wrong"
	FileSystemReadOnly   Page = "how-to/troubleshoot.md|Troubleshoot a volume|File system is read-only"
	FreeAStuckVolume     Page = "how-to/free-a-stuck-volume.md|Free a volume that is stuck at a server"
	ImportAConfiguration Page = "how-to/import.md|Import an existing configuration"
	ImportAVolume        Page = "how-to/import-a-volume.md|Import a volume, a snapshot or a backup|Import an existing volume"
	Orphans              Page = "how-to/troubleshoot.md|Troubleshoot a volume|Orphans"
	ReplaceUpstream      Page = "how-to/replace-upstream.md|Replace upstream's cinder-csi-plugin"
	Restore              Page = "how-to/backup-and-restore.md|Back up and restore|Restore"
	RightsToDiagnose     Page = "how-to/troubleshoot.md|Troubleshoot a volume|Rights"
	RotateCredentials    Page = "how-to/rotate-credentials.md|Replace the credentials of the driver"
	RulesOfTheGenerator  Page = "reference/access-rules.md|Access rules|Rules of the generator"
	SeveralClusters      Page = "how-to/several-clouds.md|Several clouds, regions and projects|Several clusters in one project"
	StorageDoesNotAnswer Page = "how-to/troubleshoot.md|Troubleshoot a volume|The storage does not answer"
	TwoBundles           Page = "how-to/several-clouds.md|Several clouds, regions and projects|Two bundles in one cluster"
	Zones                Page = "explanation/topology.md|Zones"
)

// base is the address of the directory that has docs, without a slash at the end. A distributor sets it when the program is built:
// -ldflags "-X github.com/cinder-csi/cinder-csi/internal/pages.base=https://...". No address is built in, because somebody else may own it one day.
var base string

// String is the address of the page, or its title if the program has no address.
func (p Page) String() string {
	if base == "" {
		return p.Title()
	}
	return p.Below(base)
}

// Title is the title of the page, with that of the section. What a bundle holds has it, so that every build of the generator writes the same bytes.
func (p Page) Title() string {
	_, title, _ := strings.Cut(string(p), "|")
	title, section, within := strings.Cut(title, "|")
	if within {
		return `page "` + title + `", ` + section
	}
	return `page "` + title + `"`
}

// Below is the address of the page where a directory with docs has an address.
func (p Page) Below(base string) string {
	path, title, _ := strings.Cut(string(p), "|")
	if _, section, within := strings.Cut(title, "|"); within {
		path += "#" + strings.ReplaceAll(strings.ToLower(section), " ", "-")
	}
	return base + "/docs/" + path
}
