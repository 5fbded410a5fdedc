package cloud

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

func TestAWrittenCloudsYAMLIsTheSameLogin(t *testing.T) {
	for name, conf := range map[string]string{
		"password":               "auth-url=https://k/v3\nusername=u\npassword=\"0123\"\ntenant-name=p\nuser-domain-name=true\ntenant-domain-id=d\nregion=R\ntls-insecure=true\n",
		"one domain for both":    "auth-url=https://k/v3\nuser-id=u\npassword=\"a: b # c\"\ntenant-id=p\ndomain-name=D\nos-endpoint-type=internal\n",
		"application credential": "auth-url=https://k/v3\napplication-credential-id=i\napplication-credential-secret=\"\\\"x\\\\\"\n",
		"token":                  "auth-url=https://k/v3\ntoken=t\ntenant-id=p\n",
		"trust":                  "auth-url=https://k/v3\ntrust-id=t\ntrustee-id=u\ntrustee-password=p\n",
		"certificates":           "auth-url=https://k/v3\nuser-id=u\npassword=p\ntenant-id=p\nca-file=/ca\ncert-file=/c\nkey-file=/k\n",
	} {
		t.Run(name, func(t *testing.T) {
			f, err := cloudconf.Parse([]byte("[Global]\n" + conf))
			if err != nil {
				t.Fatal(err)
			}
			want, err := FromConf(f, "", environment(nil))
			if err != nil {
				t.Fatal(err)
			}
			text, err := want.CloudsYAML("blue")
			if err != nil {
				t.Fatal(err)
			}
			dir, env := write(t, map[string]string{"clouds.yaml": string(text)})
			got, err := FromSource(Source{CloudName: "blue", CloudsFile: filepath.Join(dir, "clouds.yaml"), Env: env})
			if err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			want.Name = got.Name
			if diff := cmp.Diff(plainLogin(want), plainLogin(got)); diff != "" {
				t.Errorf("(-cloud.conf +clouds.yaml):\n%s\n%s", diff, text)
			}
		})
	}
}

// plainLogin is what a login sends, with each domain resolved and the secrets readable.
func plainLogin(s Settings) map[string]string {
	return map[string]string{
		"auth": s.AuthURL, "user": s.UserID + "/" + s.Username, "password": string(s.Password), "project": s.ProjectID + "/" + s.ProjectName,
		"user domain": s.userDomain()[0] + "/" + s.userDomain()[1], "project domain": s.projectDomain()[0] + "/" + s.projectDomain()[1],
		"application credential": s.ApplicationCredentialID + "/" + string(s.ApplicationCredentialSecret), "token": string(s.Token), "trust": s.TrustID,
		"region": s.Region, "interface": s.Interface, "files": s.CACertFile + "," + s.CertFile + "," + s.KeyFile, "insecure": map[bool]string{true: "true"}[s.Insecure],
	}
}
