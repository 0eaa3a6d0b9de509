// Searchers skip edit sites.
function handler(event) {
    var response = event.response;
    var host = event.request.headers.host ? event.request.headers.host.value.toLowerCase() : '';
    var ending = '.edit.DOMAIN';
    if (host.slice(-ending.length) === ending) {
        response.headers['x-robots-tag'] = { value: 'noindex' };
    }
    return response;
}
