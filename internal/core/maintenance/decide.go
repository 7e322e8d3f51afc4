package maintenance

// Decide decides about maintenances and their nodes. It needs every maintenance
// that shares a node with one of them, directly or through others.
func Decide(snapshot Snapshot) Decision {
	return decide(aim(see(snapshot)))
}
