from tests.go.conftest import own_tables  # noqa: F401, which is used by every test
