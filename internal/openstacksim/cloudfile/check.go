package cloudfile

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// largestCount bounds the types of one entry: the generator reads no more.
const largestCount = 10_000

// checker collects what is wrong with a cloud that could be decoded.
type checker struct {
	problems []string
	config   openstacksim.Config
}

func (k *checker) problem(format string, args ...any) {
	k.problems = append(k.problems, fmt.Sprintf(format, args...))
}

// check finds mistakes in the cloud that a real one could not have, or that the simulation does not have.
func (d document) check(c openstacksim.Config) []string {
	k := &checker{config: c}
	k.plain("region", c.Region)
	k.names("zones.compute", c.ComputeZones, true)
	k.names("zones.volume", c.VolumeZones, true)
	d.checkTypes(k)
	k.identities()
	k.quotas(d.Projects)
	d.checkServices(k)
	for i, f := range d.Faults {
		f.check(k, fmt.Sprintf("faults[%d]", i))
	}
	for _, op := range slices.Sorted(maps.Keys(d.Latency)) {
		if !slices.Contains(openstacksim.Operations, openstacksim.Operation(op)) {
			k.problem("latency: unknown operation %s; known are %s", op, joined(openstacksim.Operations))
		}
	}
	if c.PageSize < 0 || d.PageSize != nil && c.PageSize == 0 {
		k.problem("pageSize is %d; want at least 1", c.PageSize)
	}
	return k.problems
}

func joined[T ~string](list []T) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}

// names checks the names of one list: none empty, none twice.
func (k *checker) names(where string, names []string, needsOne bool) {
	if needsOne && len(names) == 0 {
		k.problem("%s is empty; want at least one", where)
	}
	seen := map[string]bool{}
	for i, n := range names {
		switch {
		case strings.TrimSpace(n) == "":
			k.problem("%s[%d]: the name is empty", where, i)
		case seen[n]:
			k.problem("%s has %q twice", where, n)
		}
		seen[n] = true
	}
}

// plain checks a text that stands without quotes in clouds.yaml and cloud.conf.
func (k *checker) plain(where, text string) {
	var read any
	if err := yaml.Unmarshal([]byte(text), &read); err != nil || read != text || !plainText.MatchString(text) {
		k.problem("%s: %q: want letters, digits, '.', '_' and '-', and no number or other word with a meaning in YAML", where, text)
	}
}

var plainText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (d document) checkTypes(k *checker) {
	var names, ids, groups []string
	for _, t := range k.config.VolumeTypes {
		names, ids = append(names, t.Name), append(ids, t.ID)
		for _, p := range t.Projects {
			if !t.Private {
				k.problem("volume type %q: projects are only for a private type", t.Name)
			}
			k.project(fmt.Sprintf("volume type %q", t.Name), p)
		}
		if e := t.Encryption; e != nil && (e.Provider == "" || e.Location != "front-end" && e.Location != "back-end") {
			k.problem("volume type %q: encryption needs a provider, and a location of front-end or back-end", t.Name)
		}
	}
	for _, t := range d.VolumeTypes {
		if t.Count < 0 || t.Count > largestCount || t.Count > 0 && t.ID != "" {
			k.problem("volume type %q: count is %d; want 1 to %d and no id, because IDs follow from names", t.Name, t.Count, largestCount)
		}
	}
	for _, g := range k.config.GroupTypes {
		groups = append(groups, g.Name)
	}
	k.names("volumeTypes", names, false)
	k.names("volumeTypes (id)", ids, false)
	k.names("groupTypes", groups, false)
	if standard := k.config.DefaultVolumeType; standard != "" && !slices.Contains(names, standard) {
		k.problem("defaultVolumeType: there is no volume type %q; \"\" is a cloud without a default", standard)
	}
}

func (k *checker) project(where, name string) {
	if !slices.ContainsFunc(k.config.Projects, func(p openstacksim.Project) bool { return p.Name == name }) {
		k.problem("%s: there is no project %q", where, name)
	}
}

// roles are the roles that the policies of the simulated services know.
var roles = []string{"admin", "member", "reader"}

func (k *checker) identities() {
	var projects, users, credentials []string
	for _, p := range k.config.Projects {
		projects = append(projects, p.Name)
		k.plain("projects", p.Name)
		if !hexID.MatchString(p.ID) {
			k.problem("project %s: the ID %q is not 32 hexadecimal digits, as Keystone's are", p.Name, p.ID)
		}
	}
	for _, u := range k.config.Users {
		users = append(users, u.Name)
		where := "user " + u.Name
		k.plain("users", u.Name)
		k.plain(where+": password", u.Password)
		for _, p := range slices.Sorted(maps.Keys(u.Roles)) {
			k.project(where, p)
			k.knownRoles(where, u.Roles[p])
		}
		if len(u.Roles) == 0 {
			k.problem("%s: has no role in any project, so that it cannot log in", where)
		}
	}
	for _, a := range k.config.ApplicationCredentials {
		credentials = append(credentials, a.Name)
		k.credential(a)
	}
	k.names("projects", projects, true)
	k.names("users", users, false)
	k.names("applicationCredentials", credentials, false)
}

var hexID = regexp.MustCompile(`^[0-9a-f]{32}$`)

func (k *checker) knownRoles(where string, list []string) {
	for _, r := range list {
		if !slices.Contains(roles, r) {
			k.problem("%s: unknown role %q; known are %s", where, r, strings.Join(roles, ", "))
		}
	}
	if len(list) == 0 {
		k.problem("%s: has no role", where)
	}
}

func (k *checker) credential(a openstacksim.ApplicationCredential) {
	where := "application credential " + a.Name
	k.plain("applicationCredentials", a.Name)
	k.plain(where+": secret", a.Secret)
	if !slices.ContainsFunc(k.config.Users, func(u openstacksim.User) bool { return u.Name == a.User }) {
		k.problem("%s: there is no user %q", where, a.User)
		return
	}
	if a.Project == "" {
		k.problem("%s: user %s has several projects; name one with project", where, a.User)
		return
	}
	k.project(where, a.Project)
	k.knownRoles(where, a.Roles)
	for _, r := range a.AccessRules {
		if r.Service == "" || !strings.HasPrefix(r.Path, "/") {
			k.problem("%s: an access rule needs a service (%s or %s) and a path from / on", where, k.config.VolumeServiceType, k.config.ComputeServiceType)
		}
	}
}

func (k *checker) quotas(projects []openstacksim.Project) {
	known := []string{"volumes", "gigabytes", "snapshots", "backups", "backup_gigabytes", "per_volume_gigabytes", "groups"}
	for _, t := range k.config.VolumeTypes {
		known = append(known, "volumes_"+t.Name, "gigabytes_"+t.Name, "snapshots_"+t.Name)
	}
	for _, p := range projects {
		for _, resource := range slices.Sorted(maps.Keys(p.Quota)) {
			if !slices.Contains(known, resource) {
				k.problem("project %s: unknown quota %q; want %s, or one of the first three with _TYPE", p.Name, resource, strings.Join(known[:7], ", "))
			}
		}
	}
}

func (d document) checkServices(k *checker) {
	for _, s := range []struct {
		name          string
		asked         string
		major, newest int
	}{
		{"services.blockStorage", d.Services.BlockStorage.MaxMicroversion, 3, openstacksim.NewestVolumeMinor},
		{"services.compute", d.Services.Compute.MaxMicroversion, 2, openstacksim.NewestComputeMinor},
	} {
		if s.asked == "" {
			continue
		}
		major, minor, _ := strings.Cut(s.asked, ".")
		n, err := strconv.Atoi(minor)
		if major != strconv.Itoa(s.major) || err != nil || n < 0 || n > s.newest || strconv.Itoa(n) != minor || s.major == 2 && n == 0 {
			k.problem("%s: maxMicroversion %q; the simulation has %d.%d at most", s.name, s.asked, s.major, s.newest)
		}
	}
}

func (f fault) check(k *checker, where string) {
	switch {
	case segments[f.Service] == "":
		k.problem("%s: unknown service %q; want identity, compute or block-storage", where, f.Service)
	case f.Path != "" && !strings.HasPrefix(f.Path, "/"):
		k.problem("%s: the path %q does not begin with /", where, f.Path)
	case f.Status != 0 && (f.Status < http.StatusBadRequest || f.Status > 599):
		k.problem("%s: status %d is not an error; want 400 to 599", where, f.Status)
	case f.Status == 0 && f.Delay == 0 && !f.Drop:
		k.problem("%s: has no effect; it needs status, delay or drop", where)
	case f.Skip < 0 || f.Times < 0:
		k.problem("%s: skip and times are counts; want 0 or more", where)
	}
}
