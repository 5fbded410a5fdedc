//go:build openstack

package guests

import (
	"context"
	"io"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
)

// csi-sanity with the node role in a guest, and volumes that Nova plugs there.
func TestSanityWithTheNodeInAGuest(t *testing.T) {
	for name, access := range map[string]string{"file systems": "mount", "raw block": "block"} {
		t.Run(name, func(t *testing.T) {
			r := newCloud(t)
			dir := t.TempDir()
			startControllerAt(t, filepath.Join(dir, "controller"), "--cloud-config="+filepath.Join(r.bed, "cloud.conf"), "--cluster=sanity", "--strict", "--with-capacity")
			n := r.node(t, r.serverNamed(t, "node-az1"), "--strict")
			n.expose(t, dir)
			ctx, cancel := context.WithTimeout(t.Context(), 31*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "go", "test", "-count", "1", "-timeout", "30m", "-guest", dir, "-access", access)
			cmd.Dir, cmd.WaitDelay = filepath.Join("..", "sanity"), time.Minute
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			t.Log(strings.Join(lines[max(0, len(lines)-3):], "; "))
		})
	}
}

// expose gives other programs of this machine sockets to the driver in the guest, and to a shell there.
func (n *node) expose(t *testing.T, dir string) {
	t.Helper()
	scripts := rpc.NewServer()
	must(t, "serve a shell", scripts.RegisterName("Guest", inGuest{n.Agent}))
	listen(t, filepath.Join(dir, "shell"), func(c net.Conn) { scripts.ServeCodec(jsonrpc.NewServerCodec(c)) })
	listen(t, filepath.Join(dir, "node"), func(c net.Conn) {
		driver, err := n.DialDriver(context.Background(), "")
		if err != nil {
			c.Close()
			return
		}
		go func() {
			_, _ = io.Copy(driver, c)
			driver.Close()
		}()
		_, _ = io.Copy(c, driver)
		c.Close()
	})
}

// inGuest has the methods for net/rpc.
type inGuest struct{ agent *guest.Agent }

// Shell runs a script.
func (g inGuest) Shell(script string, output *string) (err error) {
	*output, err = g.agent.Shell(script)
	return err
}

// listen serves the connections to a socket until the test ends.
func listen(t *testing.T, socket string, serve func(net.Conn)) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	must(t, "listen", err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
}
