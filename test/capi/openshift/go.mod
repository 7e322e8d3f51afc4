// Only to say which module the CRDs of OpenShift's Machines come from: nothing is built of it,
// so that go mod tidy would take the line away.
module ebbtide.dev/ebbtide/test/capi/openshift

go 1.26.0

require github.com/openshift/api v0.0.0-20250124212313-a770960d61e0
