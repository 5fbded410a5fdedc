package cloudparity

import (
	"net/http"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// identityCases are about logging in and finding the services.
func identityCases() []Case {
	login := func(name string, status int, as Role, spoil func(object)) Case {
		return Case{Name: name, Call: createToken, Status: status, As: Nobody, Run: func(t *testing.T, b *Bed) Answer {
			body := b.clouds[b.prefix+string(as)].login()
			if spoil != nil {
				spoil(body["auth"].(object))
			}
			return b.do(t, Request{Call: createToken, As: Nobody, Body: body})
		}}
	}
	password := func(auth object) object {
		return auth["identity"].(object)["password"].(object)["user"].(object)
	}
	credential := func(auth object) object { return auth["identity"].(object)["application_credential"].(object) }
	versions := func(name string, call cloud.Call, status int, below below, as Role) Case {
		return Case{Name: name, Call: call, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
			return b.do(t, Request{Call: call, As: as, Of: Member, Below: below})
		}}
	}
	return []Case{
		login("a member logs in by password", http.StatusCreated, Member, nil),
		login("a reader logs in by password", http.StatusCreated, Reader, nil),
		login("an admin logs in by password", http.StatusCreated, Admin, nil),
		login("an application credential logs in", http.StatusCreated, AppCred, nil),
		login("a wrong password is refused", http.StatusUnauthorized, Member, func(auth object) { password(auth)["password"] = "wrong" }),
		login("an unknown user is refused", http.StatusUnauthorized, Member, func(auth object) { password(auth)["name"] = "nobody" }),
		login("an unknown project is refused", http.StatusUnauthorized, Member, func(auth object) {
			auth["scope"].(object)["project"].(object)["name"] = "nowhere"
		}),
		login("a project without a role is refused", http.StatusUnauthorized, Member, func(auth object) {
			auth["scope"].(object)["project"].(object)["name"] = "other"
		}),
		login("a wrong application credential secret is refused", http.StatusUnauthorized, AppCred, func(auth object) { credential(auth)["secret"] = "wrong" }),
		login("an unknown application credential is not found", http.StatusNotFound, AppCred, func(auth object) {
			credential(auth)["id"] = "00000000000000000000000000000000"
		}),
		login("a login without methods is refused", http.StatusBadRequest, Member, func(auth object) { delete(auth["identity"].(object), "methods") }),
		versions("Keystone tells its versions", identityVersions, http.StatusMultipleChoices, address, Nobody),
		versions("Nova tells its versions", computeVersions, http.StatusOK, address, Nobody),
		versions("Nova tells of one version", computeVersions, http.StatusOK, version, Nobody),
		versions("Nova tells a member of one version", computeVersions, http.StatusOK, version, Member),
		versions("Cinder tells its versions", volumeVersions, http.StatusMultipleChoices, address, Nobody),
		versions("Cinder tells of one version only with a token", volumeVersions, http.StatusUnauthorized, version, Nobody),
		versions("Cinder tells a member of one version", volumeVersions, http.StatusOK, version, Member),
	}
}
