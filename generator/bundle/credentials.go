package bundle

import (
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// credentials gives the command that makes the Secret, or that shows whether its owner has made it.
func (w *text) credentials(r plan.Result) {
	w.line("\n## The credentials\n")
	c, ns := r.Credentials.Value, r.ControllerNamespace.Value
	if c.Owner == plan.HyperShift {
		w.hostedCredentials(c, ns)
		return
	}
	if c.Owner == plan.CredentialOperator {
		w.requested(r)
		return
	}
	w.line("A `clouds.yaml` with an entry `%s`, best with an application credential of its own. It is never part of this directory.\n", c.Cloud)
	w.line("```sh")
	if r.Target == v1alpha1.HostedControlPlane {
		w.line("# in the management cluster")
	} else if !brought(ns) { // The namespace must be there before the Secret.
		w.here()
		w.line("kubectl apply -f $DIR/namespace.yaml")
	}
	ca := ""
	if key := r.CAKey.Value; key != "" {
		ca = " --from-file=" + shell.Word(key) + "=ca.pem"
	}
	w.line("kubectl create secret generic %s --namespace %s --from-file=%s=clouds.yaml%s", shell.Word(c.SecretName), shell.Word(ns), shell.Word(c.Key), ca)
	w.line("```")
	w.ownCA(r)
}

// ownCA says what a cloud with a private CA needs, unless the configuration has it.
func (w *text) ownCA(r plan.Result) {
	switch {
	case r.CAKey.Value != "":
		w.line("\nThe file `ca.pem` has the certificates of the CA of OpenStack. A `cacert` in `clouds.yaml` does not count: it is a path of your machine.")
	case r.CASource.Value.ConfigMap == "":
		w.line("\nIf a private CA has signed the certificates of OpenStack, add `--from-file=cacert=ca.pem` with the certificates of that CA. Without them")
		w.line("the driver cannot log in. A `cacert` in `clouds.yaml` does not count: it is a path of your machine.")
	}
}

// hostedCredentials gives no command that writes: HyperShift overwrites its own Secret at the next reconcile.
func (w *text) hostedCredentials(c plan.Credentials, namespace string) {
	w.line("Nothing to create. HyperShift copies the Secret from the namespace of the HostedCluster, where `spec.platform.openstack.identityRef`")
	w.line("names it. If that is another name, set `spec.credentials.secretName`. Its `%s` must have the entry `%s`. To replace the credentials,", c.Key, c.Cloud)
	w.line("change the Secret there: the driver reads the copy again without a restart. This shows the keys of the copy, not their values:\n")
	w.line("```sh")
	w.line("# in the management cluster")
	w.line("kubectl describe secret %s --namespace %s", shell.Word(c.SecretName), shell.Word(namespace))
	w.line("```\n")
	w.line("If a private CA has signed the certificates of OpenStack, its certificates belong into the key `cacert` of that Secret. HyperShift copies")
	w.line("them too. The file that `cacert` in `clouds.yaml` names does not exist in the pods, and does not matter.")
}
