package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// May asks the API server whether a service account has a right: a SubjectAccessReview, which the API server answers and does not store.
// Errors: ErrDenied, ErrUnreachable.
func (c *Cluster) May(ctx context.Context, namespace, account string, right authorizationv1.ResourceAttributes) (bool, error) {
	const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	failed := func(err error) error { return c.failedTo(http.MethodPost, path, err) }
	var review authorizationv1.SubjectAccessReview
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
	review.Spec = authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + namespace + ":" + account,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &right,
	}
	body, err := json.Marshal(review)
	if err != nil {
		return false, failed(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return false, failed(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	answer, err := c.do(request, path, maxAnswer)
	if err != nil {
		return false, err
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{}
	if err := json.Unmarshal(answer, &review); err != nil {
		return false, failed(err)
	}
	return review.Status.Allowed, nil
}
