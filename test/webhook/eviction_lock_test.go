package webhook

func errorText(err error) string {
	if err == nil {
		return "admitted"
	}
	return err.Error()
}
