"""The endpoints, one file a capability: translate, call one verb, answer."""
