package bundle

import (
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
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
	w.line("kubectl create secret generic %s --namespace %s --from-file=%s=clouds.yaml", quote(c.SecretName), quote(ns), quote(c.Key))
	w.line("```")
}

// hostedCredentials gives no command that writes: HyperShift overwrites its own Secret at the next reconcile.
func (w *text) hostedCredentials(c plan.Credentials, namespace string) {
	w.line("Nothing to create. HyperShift copies the Secret from the namespace of the HostedCluster, where `spec.platform.openstack.identityRef`")
	w.line("names it. If that is another name, set `spec.credentials.secretName`. Its `%s` must have the entry `%s`. To replace the credentials,", c.Key, c.Cloud)
	w.line("change the Secret there: the driver reads the copy again without a restart. This shows the keys of the copy, not their values:\n")
	w.line("```sh")
	w.line("# in the management cluster")
	w.line("kubectl describe secret %s --namespace %s", quote(c.SecretName), quote(namespace))
	w.line("```")
}
