package sandbox

// Account is the ServiceAccount that the manager runs under. Its namespace is the
// manager's own.
type Account struct{ Namespace, Name string }

// User is whom the API server takes it for.
func (a Account) User() string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }

// Groups returns the groups of the account, beside those of all users.
func (a Account) Groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + a.Namespace}
}
