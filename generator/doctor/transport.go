package doctor

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// Limits of the checks of time. A token or a certificate of five minutes ago is refused by common defaults; half a minute shows
// that no time service runs.
const (
	skewWarning, skewError     = 30 * time.Second, 5 * time.Minute
	expiryWarning, expiryError = 30 * 24 * time.Hour, 3 * 24 * time.Hour
)

// LoginFailed adds the finding of a cloud that could not be logged in to.
func (r *Report) LoginFailed(err error) {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	const why = "the driver verifies certificates in the same way and could not log in"
	switch {
	case errors.As(err, &authority):
		r.add("cloud.tls", Error, err.Error(), why,
			"give the CA of the cloud with --os-cacert (or cacert in clouds.yaml); for the pods, set spec.credentials.caBundle or caKey")
	case errors.As(err, &name):
		r.add("cloud.tls", Error, err.Error(), why, "use the host name of the certificate in auth_url, or have the operator of the cloud issue another certificate")
	case errors.As(err, &invalid):
		r.add("cloud.tls", Error, err.Error(), why, "have the operator of the cloud renew the certificate; check the clock of this machine first")
	case errors.Is(err, cloud.ErrUnauthorised):
		r.add("cloud.login", Error, err.Error(), "the driver could not log in either",
			"check user, password or application credential in clouds.yaml; an application credential may have expired or been deleted")
	default:
		r.add("cloud.login", Error, err.Error(), "the driver could not reach the cloud from here either",
			"check auth_url in clouds.yaml, DNS, the proxy and the firewall")
	}
}

// checkTransport reports on certificates and clocks of every host that responded.
func (c *cloudCheck) checkTransport() {
	t := c.traffic
	t.lock.Lock()
	defer t.lock.Unlock()
	private, secure, fine := []string{}, 0, true
	for _, name := range slices.Sorted(maps.Keys(t.hosts)) {
		h := t.hosts[name]
		if len(h.chain) > 0 {
			secure++
			fine = c.checkExpiry(name, h.chain) && fine
			if !publiclyTrusted(h.chain, c.roots) {
				private = append(private, name)
			}
		}
	}
	if len(private) > 0 {
		c.checkPrivateCA(private)
	}
	for _, weakness := range c.Weaknesses {
		fine = false
		c.report.add("cloud.tls", Warning, weakness, "somebody on the network can read the credentials", "use https and verify certificates")
	}
	if fine && secure > 0 {
		c.report.ok("cloud.tls", "the certificates of %d hosts are valid for at least %d days", secure, int(expiryWarning.Hours()/24))
	}
	c.checkClocks(t.hosts)
}

// checkExpiry reports the certificate of a chain that expires first.
func (c *cloudCheck) checkExpiry(name string, chain []*x509.Certificate) bool {
	first := slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	severity, soon := expires(first.NotAfter, c.traffic.Now())
	if soon {
		c.report.add("cloud.tls", severity, fmt.Sprintf("host %s: the certificate of %q expires at %s", name, cloud.Clean(first.Subject.String()), stamp(first.NotAfter)),
			"afterwards every request to the cloud fails", "have the operator of the cloud renew it before that")
	}
	return !soon
}

func (c *cloudCheck) checkPrivateCA(hosts []string) {
	if c.CABundle {
		c.report.ok("cloud.tls", "%s: a private CA, which the configuration names for the pods", list(hosts))
		return
	}
	if c.CAOwner != "" {
		c.report.ok("cloud.tls", "%s: a private CA. %s puts it into the key cacert of Secret %s, which the pods trust; check with the command in the README.md of the bundle", list(hosts), c.CAOwner, c.Secret)
		return
	}
	c.report.add("cloud.tls", Error, list(hosts)+": the certificate is not from a public CA, and the configuration names none",
		"the logins of the pods fail, unless the Secret with the credentials has the CA under the key cacert",
		"name the key in spec.credentials.caKey and put the CA there, or put its PEM into spec.credentials.caBundle; it is not secret")
}

// publiclyTrusted verifies a chain with the CAs of the system, as an image with public CAs does.
func publiclyTrusted(chain []*x509.Certificate, roots *x509.CertPool) bool {
	between := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: chain[0].NotBefore.Add(time.Second)})
	return err == nil
}

func (c *cloudCheck) checkClocks(hosts map[string]*host) {
	dated, worst := 0, time.Duration(0)
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		h := hosts[name]
		if !h.dated {
			continue
		}
		dated++
		off := h.skew.Abs()
		worst = max(worst, off)
		if off < skewWarning {
			continue
		}
		severity := Warning
		if off >= skewError {
			severity = Error
		}
		c.report.add("cloud.clock", severity, fmt.Sprintf("the clock of host %s is %s", name, aheadOrBehind(h.skew)),
			"tokens and certificates seem expired or not yet valid, and times in logs cannot be compared", "synchronise the clocks of this machine and of the cloud (NTP)")
	}
	switch {
	case dated == 0:
		c.report.notChecked("the clocks of the cloud", "no response had a Date header", "compare the clocks by hand")
	case worst < skewWarning:
		c.report.ok("cloud.clock", "the clocks of %d hosts agree with that of this machine within %s", dated, max(worst.Round(time.Second), time.Second))
	}
}

func aheadOrBehind(d time.Duration) string {
	if d < 0 {
		return d.Abs().Round(time.Second).String() + " behind that of this machine"
	}
	return d.Round(time.Second).String() + " ahead of that of this machine"
}

// expires says how urgent the end of something is.
func expires(at, now time.Time) (Severity, bool) {
	switch left := at.Sub(now); {
	case left < expiryError:
		return Error, true
	case left < expiryWarning:
		return Warning, true
	}
	return OK, false
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
