// A customer's own domain: the tenant's parameter names the project in the path of the origin.
function site() {
    return '';
}
