package limit

import "testing"

func TestWhoUsesAMount(t *testing.T) {
	t.Parallel()
	const (
		own     = "cinder-csi.io"
		other   = "cinder.csi.openstack.org"
		kubelet = "/var/lib/kubelet"
		staged  = "/plugins/kubernetes.io/csi/"
	)
	for name, c := range map[string]struct {
		mount Entry
		want  user
	}{
		"the root directory":                       {Entry{Path: "/"}, machine},
		"the root directory, a subvolume of btrfs": {Entry{Path: "/", Root: "/@"}, machine},
		"the directory of kubelet":                 {Entry{Path: kubelet}, machine},
		"the directory of kubelet, bound":          {Entry{Path: kubelet, Root: "/var/lib/kubelet"}, machine},
		"the directory of kubelet, elsewhere":      {Entry{Path: "/data/kubelet"}, machine},
		"a name that only begins like it":          {Entry{Path: "/data/kubelet-old"}, unknown},
		"bound into this container":                {Entry{Path: "/etc/hosts", Root: "/etc/hosts"}, machine},
		"a device node, bound":                     {Entry{Path: "/dev/vdb", Root: "/vdb", FSType: "devtmpfs"}, unknown},
		"a whole file system somewhere":            {Entry{Path: "/mnt"}, unknown},
		"staged by this driver":                    {Entry{Path: kubelet + staged + own + "/6f1e/globalmount"}, pods},
		"staged by another driver":                 {Entry{Path: kubelet + staged + other + "/6f1e/globalmount"}, anotherDriver},
		"staged by another driver, a subvolume":    {Entry{Path: kubelet + staged + other + "/6f1e/globalmount", Root: "/data"}, anotherDriver},
		"staged by another driver, k0s":            {Entry{Path: "/var/lib/k0s" + staged + other + "/6f1e/globalmount"}, anotherDriver},
		"staged by this driver, k0s":               {Entry{Path: "/var/lib/k0s" + staged + own + "/6f1e/globalmount"}, unknown},
		"staged by an older kubelet":               {Entry{Path: kubelet + staged + "pv/pvc-1/globalmount"}, pods},
		"below a staged volume":                    {Entry{Path: kubelet + staged + other + "/6f1e/globalmount/data"}, pods},
		"the volume of a pod":                      {Entry{Path: kubelet + "/pods/1/volumes/kubernetes.io~csi/pv/mount"}, pods},
		"a directory of a volume":                  {Entry{Path: kubelet + "/pods/1/volumes/kubernetes.io~csi/pv/mount", Root: "/disks"}, pods},
		"a directory kubelet in a volume":          {Entry{Path: kubelet + "/pods/1/volumes/kubernetes.io~csi/pv/mount/kubelet"}, pods},
		"a subPath":                                {Entry{Path: kubelet + "/pods/1/volume-subpaths/pv/c/0", Root: "/sub"}, pods},
		"a subPath, k0s":                           {Entry{Path: "/var/lib/k0s/pods/1/volume-subpaths/pv/c/0", Root: "/sub"}, pods},
		"the volume of a pod, k0s":                 {Entry{Path: "/var/lib/k0s/pods/1/volumes/kubernetes.io~csi/pv/mount"}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.mount.Root == "" {
				c.mount.Root = "/"
			}
			if got := userOf(c.mount, own); got != c.want {
				t.Errorf("want %d, got %d", c.want, got)
			}
		})
	}
	if got := userOf(Entry{Path: kubelet + staged + other + "/6f1e/globalmount", Root: "/"}, ""); got != pods {
		t.Errorf("without a name every driver is this one: want %d, got %d", pods, got)
	}
}
