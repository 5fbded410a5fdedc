package cloudfile

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// applyIdentities replaces projects, users and application credentials.
func (d document) applyIdentities(c *openstacksim.Config) {
	if d.Projects != nil {
		c.Projects = nil
		for _, p := range d.Projects {
			c.Projects = append(c.Projects, openstacksim.Project{ID: cmp.Or(p.ID, openstacksim.FixedHex("project", p.Name)), Name: p.Name, Quota: p.Quota})
		}
	}
	if d.Users != nil {
		c.Users = nil
		for _, u := range d.Users {
			c.Users = append(c.Users, openstacksim.User{
				ID: openstacksim.FixedHex("user", u.Name), Name: u.Name, Password: cmp.Or(u.Password, "sim-"+u.Name), Roles: u.Roles,
			})
		}
	}
	if d.ApplicationCredentials != nil {
		c.ApplicationCredentials = nil
		for _, a := range d.ApplicationCredentials {
			c.ApplicationCredentials = append(c.ApplicationCredentials, a.credential(c.Users))
		}
	}
}

// credential completes an application credential: the only project of its user, and the roles that the user has there.
func (a credential) credential(users []openstacksim.User) openstacksim.ApplicationCredential {
	made := openstacksim.ApplicationCredential{
		ID: openstacksim.FixedHex("application-credential", a.Name), Name: a.Name, Secret: cmp.Or(a.Secret, "sim-appcred-"+a.Name),
		User: a.User, Project: a.Project, Roles: a.Roles,
	}
	if i := slices.IndexFunc(users, func(u openstacksim.User) bool { return u.Name == a.User }); i >= 0 {
		if made.Project == "" && len(users[i].Roles) == 1 {
			made.Project = slices.Collect(maps.Keys(users[i].Roles))[0]
		}
		if made.Roles == nil {
			made.Roles = users[i].Roles[made.Project]
		}
	}
	for _, r := range a.AccessRules {
		made.AccessRules = append(made.AccessRules, openstacksim.AccessRule{Service: r.Service, Method: cmp.Or(r.Method, http.MethodGet), Path: r.Path})
	}
	return made
}

// applyServers gives a cloud with other projects or compute zones one server in each compute zone, as the demo cloud has.
func (d document) applyServers(c *openstacksim.Config) {
	if d.Projects == nil && d.Zones.Compute == nil || len(c.Projects) == 0 {
		return
	}
	owner := c.Projects[0].Name
	if slices.ContainsFunc(c.Projects, func(p openstacksim.Project) bool { return p.Name == "demo" }) {
		owner = "demo"
	}
	c.Servers = nil
	for _, z := range c.ComputeZones {
		name := "node-" + z
		c.Servers = append(c.Servers, openstacksim.Server{
			ID: openstacksim.FixedID("server", name), Name: name, Project: owner, Zone: z, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		})
	}
}

// segments are the first path segments of the simulated services.
var segments = map[string]string{"identity": "/identity", "compute": "/compute", "block-storage": "/volume"}

func (f fault) fault() openstacksim.Fault {
	return openstacksim.Fault{
		Method: f.Method, Path: segments[f.Service] + cmp.Or(f.Path, "/**"), Status: f.Status, Message: f.Message,
		Delay: time.Duration(f.Delay), Drop: f.Drop, Skip: f.Skip, Times: f.Times,
	}
}
